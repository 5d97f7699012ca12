-- A connection that one session has given back is used by another: its name in pg_stat_activity follows.
select pg_catalog.set_config('application_name', $1, false)
