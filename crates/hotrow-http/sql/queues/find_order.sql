-- Reads the state and the outcome of an order.
select id, state, attempt, group_key, payload, created_at, enqueued_at, not_before, taken_at, due, done_at, status, result,
    error
from hotrow.find_order($1, $2)
