-- How long a statement may run in a lane, in milliseconds. The server's own timer is the only one that can't hit the next
-- batch or a commit: it is stopped after each statement, and before a Sync commits. Set when the lane has logged in, for what
-- the gateway asks before that takes as long as it takes.
select pg_catalog.set_config('statement_timeout', $1, false)
