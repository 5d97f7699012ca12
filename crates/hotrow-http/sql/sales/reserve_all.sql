-- Reserves several items, or none.
select * from hotrow.reserve_all($1, $2, $3, $4)
