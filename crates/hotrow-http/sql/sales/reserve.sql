-- Reserves pieces of an item; merged with other calls.
select * from hotrow.reserve($1, $2, $3, $4)
