-- Counters that all supported versions have, once at the beginning and once at the end. Columns differ between versions,
-- so whole rows are sent and the diagnosis takes the columns that it knows.
select pg_catalog.json_build_object(
           'at_us', (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.int8,
           'database', (select pg_catalog.to_json(d) from pg_catalog.pg_stat_database d
                         where d.datname operator(pg_catalog.=) pg_catalog.current_database()),
           'writer', (select pg_catalog.to_json(b) from pg_catalog.pg_stat_bgwriter b),
           'tables', coalesce((
               select pg_catalog.json_agg(t.fact)
                 from (
                      select pg_catalog.json_build_object(
                                 'oid', s.relid::pg_catalog.int8, 'schema', s.schemaname, 'name', s.relname,
                                 'scans', s.seq_scan, 'scanned', s.seq_tup_read,
                                 'inserted', s.n_tup_ins, 'updated', s.n_tup_upd, 'deleted', s.n_tup_del,
                                 'live', s.n_live_tup, 'dead', s.n_dead_tup) as fact
                        from pg_catalog.pg_stat_user_tables s
                       order by s.n_tup_upd operator(pg_catalog.+) s.n_tup_ins operator(pg_catalog.+) s.n_tup_del
                                operator(pg_catalog.+) s.seq_tup_read desc nulls last
                       limit 300
                      ) t
           ), '[]'),
           'slots', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'name', s.slot_name, 'active', s.active, 'kind', s.slot_type,
                          'held_bytes', case when not pg_catalog.pg_is_in_recovery() then
                              pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn) end,
                          'xmin_age', greatest(pg_catalog.age(s.xmin), pg_catalog.age(s.catalog_xmin))))
                 from (select r.slot_name, r.active, r.slot_type, r.restart_lsn, r.xmin, r.catalog_xmin
                         from pg_catalog.pg_replication_slots r limit 100) s
           ), '[]'),
           'standbys', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'name', coalesce(r.application_name, ''), 'state', r.state, 'sync', r.sync_state,
                          'behind_bytes', case when not pg_catalog.pg_is_in_recovery() then
                              pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), r.replay_lsn) end,
                          'xmin_age', pg_catalog.age(r.backend_xmin)))
                 from (select p.application_name, p.state, p.sync_state, p.replay_lsn, p.backend_xmin
                         from pg_catalog.pg_stat_replication p limit 100) r
           ), '[]'),
           'prepared', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object(
                          'gid', x.gid, 'transaction', x.transaction::pg_catalog.text,
                          'age_s', pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) x.prepared)))
                 from (select p.gid, p.transaction, p.prepared from pg_catalog.pg_prepared_xacts p limit 100) x
           ), '[]')
       )::pg_catalog.text
