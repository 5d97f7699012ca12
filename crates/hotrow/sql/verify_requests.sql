-- Recorded answers and reservations that contradict each other: one sentence each.
select format('request %s: the answer names reservation %s, which does not exist', q.request_id, named.id)
from hotrow.request q
    cross join lateral unnest(q.reservation_ids) named (id)
    left join hotrow.reservation r on r.reservation_id = named.id
where r.reservation_id is null
union all
select format('request %s: the answer is reserved, and there is no reservation', q.request_id)
from hotrow.request q where q.status = 'reserved' and q.state is null and q.reservation_ids is null
union all
select format('request %s: there is a reservation, and the answer is %s', q.request_id, q.status)
from hotrow.request q where q.status <> 'reserved' and q.state is not null
