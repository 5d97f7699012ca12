-- The longest time that a statement may run in a lane, in milliseconds. The server's own timer cannot hit the next
-- batch or a commit: the server stops it after each statement and before a Sync commits. The gateway sets it after its
-- own queries at log-in, which may take longer.
-- Without compilation, because the client's settings, such as enable_seqscan = off, would make the server compile even
-- the shortest query.
select pg_catalog.set_config('statement_timeout', $1, false), pg_catalog.set_config('jit', 'off', false)
