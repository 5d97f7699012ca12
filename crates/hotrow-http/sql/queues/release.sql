-- Gives an order back; merged with other calls.
select * from hotrow.release($1, $2)
