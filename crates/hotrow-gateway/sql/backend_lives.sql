-- A row if a backend can still be there. The server removes it from this view after the end of its transaction. The time of
-- its start tells it from a later backend with its process ID, and is null if this role cannot see it.
-- $1: its process ID and the time of its start, with a space between them.
select from pg_catalog.pg_stat_activity a
 where a.pid::pg_catalog.text operator(pg_catalog.=) pg_catalog.split_part($1::pg_catalog.text, ' ', 1)
   and coalesce(
           extract(epoch from a.backend_start)::pg_catalog.text
           operator(pg_catalog.=) pg_catalog.split_part($1::pg_catalog.text, ' ', 2),
           true)
