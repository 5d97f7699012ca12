-- Confirms a reservation; merged with other calls.
select * from hotrow.confirm($1)
