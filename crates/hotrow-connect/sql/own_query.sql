-- Precedes a query of the gateway in the same transaction, and returns no row. The client's settings hold for this query
-- too: with enable_seqscan = off its cost counts as so high that the server would compile it for seconds, and a short
-- statement_timeout would end it.
select
 where pg_catalog.concat(pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('statement_timeout', '0', true))
       is null
