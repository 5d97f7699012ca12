-- Completes many orders in one call; merged with other calls.
select * from hotrow.complete_all($1, $2, $3, $4)
