-- Keeps orders for longer; merged with other calls.
select * from hotrow.extend_lease($1, $2, $3)
