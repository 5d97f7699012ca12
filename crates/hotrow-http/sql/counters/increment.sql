-- Adds to a counter; merged with other calls.
select * from hotrow.increment($1, $2, $3)
