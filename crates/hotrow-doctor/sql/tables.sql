-- Tables of this database: their names, the columns that identify their rows, and whether the doctor can read them.
-- Planning a statement evaluates constants in the indexes and statistics of its table, which can call functions of the
-- table's owner. The schema's owner can put another table in its place. A superuser therefore reads rows only if both
-- are superusers. If the server cannot refuse views, the doctor reads no rows at all: begin.sql.
-- $1: their OIDs.
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
           'oid', c.oid::pg_catalog.int8,
           'schema', n.nspname,
           'name', c.relname,
           'kind', c.relkind::pg_catalog.text,
           'pages', c.relpages,
           'readable', pg_catalog.has_table_privilege(c.oid, 'select')
                       and pg_catalog.has_schema_privilege(n.oid, 'usage')
                       and not c.relrowsecurity
                       and c.relkind operator(pg_catalog.=) 'r'::pg_catalog."char"
                       and pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) is not null,
           'trusted', not pg_catalog.current_setting('is_superuser')::pg_catalog.bool
                      or (select pg_catalog.bool_and(r.rolsuper)
                            from pg_catalog.pg_roles r
                           where r.oid operator(pg_catalog.=) c.relowner
                              or r.oid operator(pg_catalog.=) case when s.rolname operator(pg_catalog.=) 'pg_database_owner'
                                                                   then d.datdba else n.nspowner end),
           'keys', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object('columns', k.columns) order by k.rank, k.name)
                 from (
                      select case when i.indisprimary then 0 else 1 end as rank, x.relname as name,
                             (select pg_catalog.json_agg(a.attname order by part.place)
                                from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as part (attnum, place)
                                join pg_catalog.pg_attribute a
                                  on a.attrelid operator(pg_catalog.=) c.oid
                                 and a.attnum operator(pg_catalog.=) part.attnum
                               where part.place operator(pg_catalog.<=) i.indnkeyatts::pg_catalog.int8) as columns
                        from pg_catalog.pg_index i
                        join pg_catalog.pg_class x on x.oid operator(pg_catalog.=) i.indexrelid
                       where i.indrelid operator(pg_catalog.=) c.oid
                         and i.indisunique
                         and i.indisvalid
                         and i.indpred is null
                         and i.indexprs is null
                       order by 1, 2
                       limit 3
                      ) k
           ), '[]')
       )), '[]')::pg_catalog.text
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
  join pg_catalog.pg_roles s on s.oid operator(pg_catalog.=) n.nspowner
  join pg_catalog.pg_database d on d.datname operator(pg_catalog.=) pg_catalog.current_database()
 where c.oid operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.oid[])
