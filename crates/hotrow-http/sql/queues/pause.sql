-- Lets nobody take.
select status from hotrow.pause($1)
