-- The settings under which statements may be packed, and how long a lane may wait for a lock, in milliseconds.
select pg_catalog.current_setting('default_transaction_isolation'),
       pg_catalog.current_setting('standard_conforming_strings'),
       pg_catalog.current_setting('client_encoding'),
       (pg_catalog.date_part('epoch', pg_catalog.current_setting('lock_timeout')::pg_catalog.interval) * 1000)::bigint
