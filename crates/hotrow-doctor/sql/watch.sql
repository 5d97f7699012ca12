-- The server at this moment, for the operations page: sessions and their waits as numbers, replication, and counters.
-- One row whose size is bounded; no text of a statement. Without pg_monitor, sessions of other roles have no state: they
-- are counted as hidden.
with activity as materialized (
    select a.state, a.wait_event_type, a.wait_event, a.xact_start
      from pg_catalog.pg_stat_activity a
     where a.pid operator(pg_catalog.<>) pg_catalog.pg_backend_pid()
       and (a.backend_type operator(pg_catalog.=) 'client backend'
           or (a.backend_type is null and a.datname is not null))
),
waits as (
    select a.wait_event_type, a.wait_event, pg_catalog.count(*) as sessions
      from activity a
     where a.state operator(pg_catalog.=) 'active'
     group by a.wait_event_type, a.wait_event
     order by 3 desc, 1, 2
     limit 20
)
select pg_catalog.json_build_object(
           'at_us', (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
           'version', pg_catalog.current_setting('server_version'),
           'database', pg_catalog.current_database(),
           'role', current_user,
           'standby', pg_catalog.pg_is_in_recovery(),
           'up_seconds', pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.pg_postmaster_start_time()),
           'max_connections', pg_catalog.current_setting('max_connections')::pg_catalog.int4,
           'synchronous_commit', pg_catalog.current_setting('synchronous_commit'),
           'connections', (select pg_catalog.count(*) from activity),
           'active', (select pg_catalog.count(*) filter (where a.state operator(pg_catalog.=) 'active') from activity a),
           'idle', (select pg_catalog.count(*) filter (where a.state operator(pg_catalog.=) 'idle') from activity a),
           'idle_in_transaction', (select pg_catalog.count(*) filter (where pg_catalog.starts_with(a.state, 'idle in transaction')) from activity a),
           'hidden', (select pg_catalog.count(*) filter (where a.state is null) from activity a),
           'oldest_transaction_seconds', (select pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.min(a.xact_start)) from activity a),
           'waits', coalesce((select pg_catalog.json_agg(pg_catalog.json_build_object(
                        'type', w.wait_event_type, 'event', w.wait_event, 'sessions', w.sessions)) from waits w), '[]'),
           'standbys', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'name', coalesce(r.application_name, ''), 'state', r.state, 'sync', r.sync_state,
                          'behind_bytes', case when not pg_catalog.pg_is_in_recovery() then
                              pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), r.replay_lsn) end))
                 from (select p.application_name, p.state, p.sync_state, p.replay_lsn
                         from pg_catalog.pg_stat_replication p limit 20) r
           ), '[]'),
           'slots', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'name', s.slot_name, 'active', s.active, 'kind', s.slot_type,
                          'held_bytes', case when not pg_catalog.pg_is_in_recovery() then
                              pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn) end))
                 from (select r.slot_name, r.active, r.slot_type, r.restart_lsn
                         from pg_catalog.pg_replication_slots r limit 20) s
           ), '[]'),
           'counters', pg_catalog.json_build_object(
               'commits', (select pg_catalog.sum(d.xact_commit)::pg_catalog.int8 from pg_catalog.pg_stat_database d),
               'rollbacks', (select pg_catalog.sum(d.xact_rollback)::pg_catalog.int8 from pg_catalog.pg_stat_database d),
               'deadlocks', (select pg_catalog.sum(d.deadlocks)::pg_catalog.int8 from pg_catalog.pg_stat_database d),
               'wal_bytes', case when not pg_catalog.pg_is_in_recovery() then
                   pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8 end,
               'flushes', null::pg_catalog.int8)
       )::pg_catalog.text
