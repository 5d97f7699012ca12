-- The state that a session has left on its connection, as one row: the settings that it has changed, booleans in the
-- order of the fields that the gateway reads, among them the channels to which it listens, and the number of statements
-- that the protocol has prepared, apart from this one (`hotrow_own`). Changes nothing.
-- A setting is `name=value`, its value as the hexadecimal digits of its bytes, because a value can contain any
-- character. A value that the role cannot read is missing, and with it the sign. A channel is written in the same way.
-- A setting with the value of the login is listed if another connection is certain to take it. Otherwise the session
-- would follow the server's configuration, and directly it keeps the value. The modes of a transaction are no settings of
-- the session: their source stays `session` after SET TRANSACTION, and they follow the session's defaults.
-- $1: the user that logged in. $2: the role that the connection began with. $3: the names of the settings that every
-- connection takes, in lower case. Runs on PostgreSQL 14 and later, as any role.
select pg_catalog.array_to_string(array(
           select pg_catalog.concat(s.name, '=' operator(pg_catalog.||)
                      pg_catalog.encode(pg_catalog.convert_to(s.setting, pg_catalog.getdatabaseencoding()), 'hex'))
             from pg_catalog.pg_settings s
            where s.source operator(pg_catalog.=) 'session'
              and s.name operator(pg_catalog.<>) all ('{application_name,transaction_isolation,transaction_read_only,
                                                        transaction_deferrable}'::pg_catalog.text[])
              and (s.setting operator(pg_catalog.<>) s.reset_val or s.setting is null
                   or pg_catalog.lower(s.name) operator(pg_catalog.=) any ($3::pg_catalog.text[]))), ' '),
       session_user::pg_catalog.text operator(pg_catalog.<>) $1::pg_catalog.text
           or pg_catalog.current_setting('role') operator(pg_catalog.<>) $2::pg_catalog.text,
       exists (select from pg_catalog.pg_depend d
                where d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
                  and d.refobjid operator(pg_catalog.=) pg_catalog.pg_my_temp_schema()),
       exists (select from pg_catalog.pg_prepared_statements p where p.from_sql),
       pg_catalog.array_to_string(array(
           select pg_catalog.encode(pg_catalog.convert_to(c, pg_catalog.getdatabaseencoding()), 'hex')
             from pg_catalog.pg_listening_channels() c), ' '),
       exists (select from pg_catalog.pg_cursors c where c.is_holdable),
       exists (select from pg_catalog.pg_locks l
                where l.locktype operator(pg_catalog.=) 'advisory'
                  and l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()),
       (select pg_catalog.count(*) from pg_catalog.pg_prepared_statements p
         where not p.from_sql and p.name operator(pg_catalog.<>) 'hotrow_own')
