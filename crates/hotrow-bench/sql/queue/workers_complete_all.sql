-- A worker's statement after it has processed the orders.
select * from hotrow.complete_all(':run', $1)
