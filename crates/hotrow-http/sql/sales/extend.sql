-- Extends a hold; merged with other calls.
select * from hotrow.extend($1, $2)
