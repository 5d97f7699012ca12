-- Reads a counter.
select value, version from hotrow.counter($1)
