-- Fails an order; merged with other calls.
select * from hotrow.fail($1, $2, $3, $4)
