-- Due notifications of an endpoint. A claim moves the time of the next attempt beyond the time limit of a delivery.
update payments.notification n set tries = n.tries + 1, due_at = now() + interval '30 seconds',
    claimed_until = now() + interval '30 seconds'
from (
    select event, endpoint from payments.notification
    where endpoint = $1 and due_at <= now() order by due_at limit $2
    for update skip locked
) due
where n.event = due.event and n.endpoint = due.endpoint
returning n.event, n.body, n.tries
