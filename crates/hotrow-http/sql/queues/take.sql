-- Takes orders, in their order; merged with other calls.
select * from hotrow.take($1, $2, $3, $4)
