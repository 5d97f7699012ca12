-- Settings of a connection on which only the gateway asks, whatever the settings of the client are: with enable_seqscan = off the
-- cost of a query counts as so high that the server would compile it for seconds, and a short timeout would end it. A question about
-- a table that somebody has locked must not hold up those about other tables.
select pg_catalog.set_config('jit', 'off', false),
       pg_catalog.set_config('statement_timeout', '0', false),
       pg_catalog.set_config('lock_timeout', '100', false),
       pg_catalog.set_config('idle_session_timeout', '0', false)
