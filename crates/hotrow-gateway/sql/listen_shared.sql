-- The connection stays open while it has nothing to do, and its statements are not cut short, whatever the role's settings are.
select pg_catalog.set_config('idle_session_timeout', '0', false), pg_catalog.set_config('statement_timeout', '0', false)
