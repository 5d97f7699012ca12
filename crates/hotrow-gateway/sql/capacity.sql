-- One row with max_connections, and the number of connections among them that are reserved: for superusers, and from
-- PostgreSQL 16 on also for members of pg_use_reserved_connections.
select pg_catalog.current_setting('max_connections'),
       pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4
           operator(pg_catalog.+) coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::pg_catalog.int4
