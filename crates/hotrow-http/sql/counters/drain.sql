-- Sets a counter to zero; merged with other calls.
select * from hotrow.drain($1, $2)
