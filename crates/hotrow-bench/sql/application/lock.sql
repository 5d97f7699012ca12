-- The lock of the application's batches: held until the commit is done, so one batch is carried out at a time.
select pg_advisory_xact_lock($1)
