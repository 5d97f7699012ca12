-- A notification of one event to one dependent service. Inserts nothing if it exists.
insert into payments.notification (event, endpoint, body, due_at) values ($1, $2, $3, now())
on conflict (event, endpoint) do nothing
