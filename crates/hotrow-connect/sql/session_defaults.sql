-- One row with:
--   - the settings that decide whether statements may be packed,
--   - in milliseconds, how long a statement may wait for a lock, and how long it may run,
--   - the role that connections begin with,
--   - the OID of the role that logged in, because another role can take over its name,
--   - in milliseconds, after which wait for a lock the server looks for a deadlock,
--   - in milliseconds, how often the server looks whether the client of a statement has gone, if it knows this setting,
--   - the search path.
select pg_catalog.current_setting('default_transaction_isolation'),
       pg_catalog.current_setting('standard_conforming_strings'),
       pg_catalog.current_setting('client_encoding'),
       (pg_catalog.date_part('epoch', pg_catalog.current_setting('lock_timeout')::pg_catalog.interval)
           operator(pg_catalog.*) 1000)::pg_catalog.int8,
       (pg_catalog.date_part('epoch', pg_catalog.current_setting('statement_timeout')::pg_catalog.interval)
           operator(pg_catalog.*) 1000)::pg_catalog.int8,
       pg_catalog.current_setting('role'),
       pg_catalog.to_regrole(pg_catalog.quote_ident(session_user))::pg_catalog.oid,
       (pg_catalog.date_part('epoch', pg_catalog.current_setting('deadlock_timeout')::pg_catalog.interval)
           operator(pg_catalog.*) 1000)::pg_catalog.int8,
       (pg_catalog.date_part(
            'epoch',
            pg_catalog.current_setting('client_connection_check_interval', true)::pg_catalog.interval
        ) operator(pg_catalog.*) 1000)::pg_catalog.int8,
       pg_catalog.current_setting('search_path')
