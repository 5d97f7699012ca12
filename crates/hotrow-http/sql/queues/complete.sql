-- Completes an order; merged with other calls.
select * from hotrow.complete($1, $2, $3, $4)
