-- The position of the log when a connection is made: the last checkpoint, the first transaction ID of this life of the
-- server if that checkpoint began it, and an ID that is not above the ID of any later transaction of this connection.
--
-- Recovery after a crash and a clean shutdown both end with a checkpoint during which nothing is written. Only such a
-- checkpoint has checkpoint_lsn = redo_lsn, and its next_xid is the first ID that the new life assigns. Three cases
-- look the same and are excluded:
--   - an ordinary checkpoint with wal_level = minimal (before version 17),
--   - a standby,
--   - a promoted standby, which shows a checkpoint of its primary (on the old timeline) until its own first checkpoint,
--     an ordinary one, is complete.
-- The server reads the control file under its lock, so all columns belong to one checkpoint.
select pg_catalog.pg_wal_lsn_diff(checkpoint_lsn, '0/0')::pg_catalog.int8,
       case when pg_catalog.pg_is_in_recovery() then null
            when checkpoint_lsn operator(pg_catalog.<>) redo_lsn then null
            when pg_catalog.current_setting('wal_level') operator(pg_catalog.=) 'minimal' then null
            when timeline_id operator(pg_catalog.=) pg_catalog.concat(
                'x', pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8)
            )::pg_catalog.bit(32)::pg_catalog.int4
            then (pg_catalog.split_part(next_xid, ':', 1)::pg_catalog.int8 operator(pg_catalog.<<) 32)
                 operator(pg_catalog.+) pg_catalog.split_part(next_xid, ':', 2)::pg_catalog.int8
       end,
       pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())
  from pg_catalog.pg_control_checkpoint()
