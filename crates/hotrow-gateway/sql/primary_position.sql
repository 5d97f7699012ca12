-- The end of the primary's WAL, its timeline, and the cluster's identifier. Refused in recovery.
--
-- Every transaction whose commit a client has learned of before this question is before this position: its commit record was
-- inserted into the WAL before the server answered, with any value of synchronous_commit. A standby that has replayed the WAL
-- up to here shows all of them. The timeline comes from the same server at the same time, because a position means nothing
-- on another timeline.
--
-- If the last record ends with its page, the server reports the position after the next page's header (40 bytes at the
-- beginning of a segment, else 24). A standby would report it only after one more record, so the header is subtracted.
-- A record never ends directly after a header.
select at.position operator(pg_catalog.-) case
           when pg_catalog.mod(at.bytes, pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')))
               operator(pg_catalog.=) 40 then 40
           when pg_catalog.mod(at.bytes, pg_catalog.current_setting('wal_block_size')::pg_catalog.int8)
               operator(pg_catalog.=) 24 then 24
           else 0
       end::pg_catalog.numeric,
       pg_catalog.concat('x', pg_catalog.left(pg_catalog.pg_walfile_name(at.position), 8))::pg_catalog.bit(32)::pg_catalog.int4,
       (select c.system_identifier from pg_catalog.pg_control_system() c)
  from (select here.position, pg_catalog.pg_wal_lsn_diff(here.position, '0/0') as bytes
          from (select pg_catalog.pg_current_wal_insert_lsn() as position offset 0) here) at
