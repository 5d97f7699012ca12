-- Enqueues one order; merged with other calls.
select * from hotrow.enqueue($1, $2, $3, $4, $5, $6, $7)
