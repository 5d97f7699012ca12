-- Unprocessed webhooks. A claim moves the time of the next look.
update payments.webhook w set tries = w.tries + 1, due_at = now() + (5 << least(w.tries, 10)) * interval '1 second'
from (
    select gateway, event from payments.webhook where due_at <= now() order by due_at limit $1
    for update skip locked
) due
where w.gateway = due.gateway and w.event = due.event
returning w.gateway, w.event, w.body
