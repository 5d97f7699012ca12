-- Lets take again.
select status from hotrow.resume($1)
