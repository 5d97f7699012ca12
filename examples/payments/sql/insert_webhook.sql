-- A webhook as received. Inserts nothing if it was received before. At `due_at` a worker processes it, if the program
-- that received it has not.
insert into payments.webhook (gateway, event, body, due_at) values ($1, $2, $3, now() + interval '5 seconds')
on conflict (gateway, event) do nothing
