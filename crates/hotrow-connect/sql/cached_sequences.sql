-- Whether a sequence exists from which each connection takes several values at once. Changes nothing.
select exists (select from pg_catalog.pg_sequence s where s.seqcache operator(pg_catalog.>) 1::pg_catalog.int8)
