-- A counter as it is.
select value, version from hotrow.counter($1)
