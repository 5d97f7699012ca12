-- What this server offers and what the doctor's role can see. The schema is that of pg_stat_statements.
select pg_catalog.json_build_object(
           'version', pg_catalog.current_setting('server_version_num')::pg_catalog.int4,
           'version_text', pg_catalog.current_setting('server_version'),
           'pid', pg_catalog.pg_backend_pid(),
           'database', pg_catalog.current_database(),
           'database_oid', (select d.oid::pg_catalog.int8 from pg_catalog.pg_database d
                             where d.datname operator(pg_catalog.=) pg_catalog.current_database()),
           'role', current_user,
           'sees_sessions', pg_catalog.pg_has_role('pg_read_all_stats', 'usage'),
           'tracks_activities', pg_catalog.current_setting('track_activities'),
           'synchronous_commit', pg_catalog.current_setting('synchronous_commit'),
           'in_recovery', pg_catalog.pg_is_in_recovery(),
           'has_wal', pg_catalog.to_regclass('pg_catalog.pg_stat_wal') is not null,
           'has_io', pg_catalog.to_regclass('pg_catalog.pg_stat_io') is not null,
           'has_checkpointer', pg_catalog.to_regclass('pg_catalog.pg_stat_checkpointer') is not null,
           'has_locks', pg_catalog.to_regclass('pg_catalog.pg_stat_lock') is not null,
           'statements_schema', (
               select pg_catalog.quote_ident(n.nspname)
                 from pg_catalog.pg_extension e
                 join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) e.extnamespace
                where e.extname operator(pg_catalog.=) 'pg_stat_statements'
                  and pg_catalog.has_schema_privilege(n.oid, 'usage'))
       )::pg_catalog.text
