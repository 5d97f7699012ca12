-- The first statement of each batch on a replica. It fails unless the server is a standby that has replayed the WAL up to $1
-- and was started at $2 (microseconds since 1970). An address can lead to several servers, and another one may be behind the one
-- that the units' sessions have read from.
--
-- The standby makes a commit visible before it advances the position that it reports. In READ COMMITTED each statement takes
-- its own snapshot when it is bound, and the batch's other statements are bound after this one has returned. Their snapshots
-- therefore contain every commit up to $1. A promotion after this statement only adds commits.
select 1 operator(pg_catalog./) case
           when pg_catalog.pg_is_in_recovery() and pg_catalog.pg_last_wal_replay_lsn() operator(pg_catalog.>=) $1
                and (extract(epoch from pg_catalog.pg_postmaster_start_time()) operator(pg_catalog.*) 1000000)::pg_catalog.int8
                    operator(pg_catalog.=) $2 then 1
           else 0
       end
