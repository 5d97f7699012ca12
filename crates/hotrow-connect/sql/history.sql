-- The cluster's identifier and the timeline of a primary; nothing of a standby.
--
-- The timeline is that of the WAL file in which the primary writes now. The control file shows a promoted standby's timeline only
-- after its first checkpoint.
select (select s.system_identifier from pg_catalog.pg_control_system() s),
       pg_catalog.concat(
           'x', pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
       )::pg_catalog.bit(32)::pg_catalog.int4
 where not pg_catalog.pg_is_in_recovery()
