-- Whether the server is a standby, how far it has replayed the WAL, its timeline, the cluster's identifier, and when the server
-- was started, in microseconds since 1970.
--
-- The timeline is the latest that the standby has written to its control file: with a restart point, or with the point that
-- it must reach again after a restart. It can be older than the timeline that the standby replays, and never newer. So a
-- standby that shows the primary's timeline has replayed that timeline's beginning. If it has gone on to a later timeline, which
-- the primary lacks, its position shows that: it is beyond the primary's, or the standby falls behind.
select pg_catalog.pg_is_in_recovery(),
       pg_catalog.pg_last_wal_replay_lsn(),
       greatest((select c.timeline_id from pg_catalog.pg_control_checkpoint() c),
                (select r.min_recovery_end_timeline from pg_catalog.pg_control_recovery() r)),
       (select s.system_identifier from pg_catalog.pg_control_system() s),
       (extract(epoch from pg_catalog.pg_postmaster_start_time()) operator(pg_catalog.*) 1000000)::pg_catalog.int8
