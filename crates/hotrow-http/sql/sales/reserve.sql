-- Reserves a part of the stock; merged with other calls.
select * from hotrow.reserve($1, $2, $3, $4)
