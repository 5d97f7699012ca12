-- Lists a page of a queue's orders in a state.
select id, order_id, attempt, group_key, created_at, enqueued_at, taken_at, due, done_at, status, error
from hotrow.list_orders($1, $2, $3, $4)
