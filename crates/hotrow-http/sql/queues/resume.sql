-- Lets a queue hand out orders again.
select status from hotrow.resume($1)
