-- Notifications that are due, claimed by moving the time when the next worker looks past what a delivery can take.
update payments.notification n set tries = n.tries + 1, due_at = now() + $1 * interval '1 second'
from (
    select event, endpoint from payments.notification where due_at <= now() order by due_at limit $2
    for update skip locked
) due, payments.endpoint e
where n.event = due.event and n.endpoint = due.endpoint and e.name = n.endpoint
returning n.event, n.endpoint, n.body, n.tries, e.url, e.secret, e.active
