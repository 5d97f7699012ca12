-- Extends a lease; merged with other calls.
select * from hotrow.extend_lease($1, $2, $3)
