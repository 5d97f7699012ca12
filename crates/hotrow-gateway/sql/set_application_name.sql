-- Another session uses a connection that was given back. Its name in pg_stat_activity becomes that of the new session's
-- client.
select pg_catalog.set_config('application_name', $1, false)
