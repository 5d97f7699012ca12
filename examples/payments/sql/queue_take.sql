-- Takes due notifications with a lease longer than the time limit of a delivery.
select receipt, order_id, payload, attempt from hotrow.take($1, $2, '30 seconds')
