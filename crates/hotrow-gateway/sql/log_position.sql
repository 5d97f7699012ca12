-- Where the log stands when a connection is made: the last checkpoint, the first transaction id of this life of the server
-- if that checkpoint began it, and an id that no later transaction of this connection falls short of.
--
-- Recovery after a crash, and a clean shutdown, end with a checkpoint during which nothing is written: only for such a one
-- checkpoint_lsn = redo_lsn, and its next_xid is the first id that the new life gives out. Three cases look alike and are
-- excluded: an ordinary checkpoint under wal_level = minimal (before version 17); a standby; and a standby that was
-- promoted, which shows a checkpoint of its primary (on the old timeline) until its own first one, an ordinary one, is done.
-- The control file is read under its lock, so that all columns are of one checkpoint.
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
