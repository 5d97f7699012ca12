-- A row unless the advisory locks of a lane's session are exactly that of its mark. Outside of a transaction, so every lock is
-- one of the session. Changes nothing.
-- $1: the key of the mark's lock, or null.
select
 where array(
           -- A lock with two keys of 32 bits has no key of 64 bits.
           select case when l.objsubid operator(pg_catalog.=) 1
                       then (l.classid::pg_catalog.int8 operator(pg_catalog.<<) 32)
                            operator(pg_catalog.|) l.objid::pg_catalog.int8 end
             from pg_catalog.pg_locks l
            where l.locktype operator(pg_catalog.=) 'advisory'
              and l.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid())
       operator(pg_catalog.<>) pg_catalog.array_remove(array[$1::pg_catalog.int8], null)
