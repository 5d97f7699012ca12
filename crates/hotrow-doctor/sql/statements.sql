-- The statements of this database that took the most time, from pg_stat_statements. find_statements.sql has set the
-- search path: the function's schema can have any name. The view of the same name is refused: begin.sql.
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
           'id', s.queryid::pg_catalog.text, 'query', pg_catalog.left(s.query, $1), 'calls', s.calls, 'total_ms', s.total_exec_time,
           'min_ms', s.min_exec_time)), '[]')::pg_catalog.text
  from (
       select p.queryid, p.query, pg_catalog.sum(p.calls)::pg_catalog.int8 as calls,
              pg_catalog.sum(p.total_exec_time) as total_exec_time, pg_catalog.min(p.min_exec_time) as min_exec_time
         from pg_stat_statements(true) p
        where p.dbid operator(pg_catalog.=) (
                select d.oid from pg_catalog.pg_database d where d.datname operator(pg_catalog.=) pg_catalog.current_database())
        group by 1, 2
        order by 3 desc
        limit 500
       ) s
