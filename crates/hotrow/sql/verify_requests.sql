-- Recorded answers that promise a reservation which is not there, a sentence each.
select format('request %s: its answer names reservation %s, which is not there', q.request_id, named.id)
from hotrow.request q
    cross join lateral unnest(q.reservation_ids) named (id)
    left join hotrow.reservation r on r.reservation_id = named.id
where r.reservation_id is null
union all
select format('request %s: its answer is reserved, without a reservation', q.request_id)
from hotrow.request q where q.status = 'reserved' and q.state is null and q.reservation_ids is null
union all
select format('request %s: a reservation, and its answer is %s', q.request_id, q.status)
from hotrow.request q where q.status <> 'reserved' and q.state is not null
