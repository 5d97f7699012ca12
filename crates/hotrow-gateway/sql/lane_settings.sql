-- The settings of a lane, which the gateway makes after its own queries at login.
--
-- statement_timeout: the longest time that a statement may run in a lane, in milliseconds. The server's own timer cannot
-- hit the next batch or a commit: the server stops it after each statement and before a Sync commits.
--
-- enable_seqscan: the server plans a lane's statement once. If it has analysed a table of one page, it plans a sequential
-- scan, and later reads all row versions of a table that has grown because of updates, for each statement. Most of them
-- are dead, but cannot be removed while other batches wait for the row. All statements of a lane have a unique index.
--
-- jit: without compilation, because settings such as enable_seqscan = off would make the server compile even the shortest
-- query.
select pg_catalog.set_config('statement_timeout', $1, false),
       pg_catalog.set_config('enable_seqscan', 'off', false),
       pg_catalog.set_config('jit', 'off', false),
       -- Whether the library of Citus is loaded, which cannot change before the server starts again.
       pg_catalog.current_setting('citus.shard_count', true) is not null
