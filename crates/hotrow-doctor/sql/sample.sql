-- One sample: the sessions that do something, and the locks of a server on which sessions wait for locks.
-- $1: the longest text of a statement, in characters. The limits bound the size of a sample.
-- The doctor's own session is left out. Idle sessions are only counted. Without pg_monitor, the sessions of other roles
-- have no state; they are sent, so that the diagnosis can report it.
with activity as materialized (
    select a.pid, a.datname, a.backend_type, a.state, a.wait_event_type, a.wait_event, a.xact_start, a.query_start,
           a.state_change, a.backend_xmin, a.backend_xid, a.query, a.client_addr
      from pg_catalog.pg_stat_activity a
     where a.pid operator(pg_catalog.<>) pg_catalog.pg_backend_pid()
       and (a.backend_type operator(pg_catalog.=) any ('{client backend,parallel worker,autovacuum worker}'::pg_catalog.text[])
           or (a.backend_type is null and a.datname is not null))
),
busy as materialized (
    select pg_catalog.json_build_object(
               'pid', a.pid,
               'database', a.datname,
               'kind', a.backend_type,
               'state', a.state,
               'wait_type', a.wait_event_type,
               'wait', a.wait_event,
               'xact_us', (pg_catalog.date_part('epoch', a.xact_start) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
               'query_us', (pg_catalog.date_part('epoch', a.query_start) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
               'changed_us', (pg_catalog.date_part('epoch', a.state_change) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
               'xmin_age', pg_catalog.age(a.backend_xmin),
               'is_local', coalesce(a.client_addr operator(pg_catalog.=) any ('{127.0.0.1,::1}'::pg_catalog.inet[])
                           or a.client_addr operator(pg_catalog.=) pg_catalog.inet_server_addr(), true),
               'writes', a.backend_xid is not null,
               'query', pg_catalog.left(a.query, $1)
           ) as fact
      from activity a
     where a.state is null
        or a.state operator(pg_catalog.<>) 'idle'
     limit 1000
),
own as materialized (
    select d.oid
      from pg_catalog.pg_database d
     where d.datname operator(pg_catalog.=) pg_catalog.current_database()
       and pg_catalog.current_setting('server_version_num')::pg_catalog.int4 operator(pg_catalog.>=) 150000
),
held as materialized (
    select l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid, l.classid, l.objid, l.pid,
           l.mode, l.granted
      from pg_catalog.pg_locks l
     where (select pg_catalog.bool_or(a.wait_event_type operator(pg_catalog.=) 'Lock' or a.state is null) from activity a)
),
-- Locks of rows are always sent. The others are sent if a session waits for one of them.
wanted as (
    select h.locktype, h.database, h.relation, h.page, h.tuple, h.virtualxid, h.transactionid, h.classid, h.objid, h.pid,
           h.mode, h.granted
      from held h
     where h.locktype operator(pg_catalog.=) any ('{tuple,transactionid}'::pg_catalog.text[])
        or not h.granted
        or (select pg_catalog.bool_or(not w.granted) from held w
             where w.locktype operator(pg_catalog.<>) all ('{tuple,transactionid}'::pg_catalog.text[]))
     limit 5000
)
select pg_catalog.json_build_object(
           'at_us', (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
           'xid', case when not pg_catalog.pg_is_in_recovery() then
               (pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text)::pg_catalog.int8 end,
           'wal', case when not pg_catalog.pg_is_in_recovery() then
               pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0'::pg_catalog.pg_lsn) end,
           -- Version 14 would write all statistics to a file for each sample.
           'commits', (select pg_catalog.pg_stat_get_db_xact_commit(d.oid) from own d),
           'changes', (select pg_catalog.pg_stat_get_db_tuples_inserted(d.oid)
                              operator(pg_catalog.+) pg_catalog.pg_stat_get_db_tuples_updated(d.oid)
                              operator(pg_catalog.+) pg_catalog.pg_stat_get_db_tuples_deleted(d.oid) from own d),
           'idle', (select pg_catalog.count(*) filter (where a.state operator(pg_catalog.=) 'idle') from activity a),
           'resting', (select pg_catalog.count(*) filter (
                           where a.state operator(pg_catalog.=) 'idle'
                             and a.state_change operator(pg_catalog.>)
                                 (pg_catalog.clock_timestamp() operator(pg_catalog.-) '1 second'::pg_catalog.interval))
                         from activity a),
           'sessions', coalesce((select pg_catalog.json_agg(b.fact) from busy b), '[]'),
           'locks', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'kind', w.locktype,
                          'database', w.database::pg_catalog.int8,
                          'relation', w.relation::pg_catalog.int8,
                          'page', w.page,
                          'tuple', w.tuple,
                          'transaction', w.transactionid::pg_catalog.text,
                          'other', pg_catalog.concat_ws('/', w.virtualxid, w.classid, w.objid),
                          'pid', w.pid,
                          'mode', w.mode,
                          'granted', w.granted
                      ))
                 from wanted w
           ), '[]')
       )::pg_catalog.text
