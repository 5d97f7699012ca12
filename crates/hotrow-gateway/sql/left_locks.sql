-- A row if a lane's session holds an advisory lock other than that of its mark. Outside of a transaction, so it is a lock of
-- the session. Changes nothing.
-- $1: the key of the mark's lock, or null.
select from pg_catalog.pg_locks l
 where l.locktype operator(pg_catalog.=) 'advisory'
   and l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()
   and ($1::pg_catalog.int8 is null
        or l.objsubid operator(pg_catalog.<>) 1
        or (l.classid::pg_catalog.int8 operator(pg_catalog.<<) 32) operator(pg_catalog.|) l.objid::pg_catalog.int8
           operator(pg_catalog.<>) $1::pg_catalog.int8)
 limit 1
