-- Notifications in these states, the oldest first. The queue keeps the reason of a failure only for a dead order.
select o.order_id as event, o.attempt as tries, o.error, o.created_at,
    case when s.state = 'processed' then o.done_at end as delivered_at
from unnest($2::text[]) s (state) cross join lateral hotrow.list_orders($1, s.state, 0, $3) o
order by o.id limit $3
