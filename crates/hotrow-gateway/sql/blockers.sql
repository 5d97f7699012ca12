-- The backends that hold the locks for which other backends wait, with what they do: the waiting backend, the blocking
-- one, its state, the seconds since its transaction began, and its query. The blocking backend is 0 for a prepared
-- transaction. A role sees only the queries of its own sessions, unless it has pg_read_all_stats.
-- $1: the waiting backends.
select w.pid, b.pid, a.state,
       pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) a.xact_start)::pg_catalog.int8,
       a.query
  from pg_catalog.unnest($1::pg_catalog.int4[]) as w (pid)
 cross join pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) as b (pid)
  left join pg_catalog.pg_stat_activity as a on a.pid operator(pg_catalog.=) b.pid
 limit 200
