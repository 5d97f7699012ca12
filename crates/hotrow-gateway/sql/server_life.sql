-- Identifies one life of a server. After a crash the server reuses IDs of transactions that never reached the WAL, so a
-- committed ID may then belong to another transaction. The start time does not change if the server restarts only its
-- children. The process IDs of the server's own children do change, and every role can see them.
select pg_catalog.concat_ws(' ',
    pg_catalog.pg_postmaster_start_time(),
    (select pg_catalog.string_agg(pid::pg_catalog.text, ',' order by pid)
       from pg_catalog.pg_stat_activity
      where datid is null and usesysid is null))
