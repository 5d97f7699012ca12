-- Whether there is a sequence of which each connection takes several values at once. Never changes anything.
select exists (select from pg_catalog.pg_sequence s where s.seqcache operator(pg_catalog.>) 1::pg_catalog.int8)
