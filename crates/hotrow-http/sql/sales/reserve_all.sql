-- Reserves several items, all or none.
select * from hotrow.reserve_all($1, $2, $3, $4)
