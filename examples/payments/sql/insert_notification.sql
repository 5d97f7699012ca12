-- One dependent service is to be told one event; nothing if it is written down already.
insert into payments.notification (event, endpoint, body, due_at) values ($1, $2, $3, now())
on conflict (event, endpoint) do nothing
