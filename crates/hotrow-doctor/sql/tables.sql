-- Tables of this database: their names, the columns that identify their rows, and whether the doctor can read them.
-- $1: their OIDs.
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
           'oid', c.oid::pg_catalog.int8,
           'schema', n.nspname,
           'name', c.relname,
           'quoted', pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', pg_catalog.quote_ident(c.relname)),
           'kind', c.relkind::pg_catalog.text,
           'pages', c.relpages,
           'readable', pg_catalog.has_table_privilege(c.oid, 'select')
                       and pg_catalog.has_schema_privilege(n.oid, 'usage')
                       and not c.relrowsecurity
                       and c.relkind operator(pg_catalog.=) 'r'::pg_catalog."char",
           'keys', coalesce((
               select pg_catalog.json_agg(pg_catalog.json_build_object('columns', k.columns, 'quoted', k.quoted) order by k.rank, k.name)
                 from (
                      select case when i.indisprimary then 0 else 1 end as rank, x.relname as name,
                             (select pg_catalog.json_agg(a.attname order by part.place)
                                from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as part (attnum, place)
                                join pg_catalog.pg_attribute a
                                  on a.attrelid operator(pg_catalog.=) c.oid
                                 and a.attnum operator(pg_catalog.=) part.attnum
                               where part.place operator(pg_catalog.<=) i.indnkeyatts::pg_catalog.int8) as columns,
                             (select pg_catalog.json_agg(pg_catalog.quote_ident(a.attname) order by part.place)
                                from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as part (attnum, place)
                                join pg_catalog.pg_attribute a
                                  on a.attrelid operator(pg_catalog.=) c.oid
                                 and a.attnum operator(pg_catalog.=) part.attnum
                               where part.place operator(pg_catalog.<=) i.indnkeyatts::pg_catalog.int8) as quoted
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
 where c.oid operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.oid[])
