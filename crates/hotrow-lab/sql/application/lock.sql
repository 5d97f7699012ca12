-- The lock of the applications' batches. It is held until the commit, so one batch is executed at a time.
select pg_advisory_xact_lock($1)
