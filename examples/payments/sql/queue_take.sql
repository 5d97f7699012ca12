-- Those that are due, ours for longer than a delivery can take.
select receipt, order_id, payload, attempt from hotrow.take($1, $2, '30 seconds')
