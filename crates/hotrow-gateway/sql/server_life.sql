-- Tells one life of a server from the next. After a crash, ids of transactions that never reached the log are given
-- out again: a committed one may then be somebody else's. The start time stays the same when only the children are
-- restarted; the process numbers of the server's own children do not, and every role may see them.
select pg_catalog.concat_ws(' ',
    pg_catalog.pg_postmaster_start_time(),
    (select pg_catalog.string_agg(pid::pg_catalog.text, ',' order by pid)
       from pg_catalog.pg_stat_activity
      where datid is null and usesysid is null))
