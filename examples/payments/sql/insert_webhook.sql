-- As it came; nothing if it came before. `due_at` is when a worker looks, should the one who took it not get to it.
insert into payments.webhook (gateway, event, body, due_at) values ($1, $2, $3, now() + interval '5 seconds')
on conflict (gateway, event) do nothing
