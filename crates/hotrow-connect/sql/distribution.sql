-- How Citus distributes a table, as one JSON value; no row if it does not. Read from Citus' own catalog, which every node
-- has. Runs only where the extension Citus is installed.
-- $1: the table's name as to_regclass accepts it.
select pg_catalog.json_build_object(
           'method', p.partmethod::pg_catalog.text,
           'column', coalesce(c.name, ''),
           'type_oid', coalesce(a.atttypid::pg_catalog.int8, 0),
           'is_deterministic', coalesce(l.collisdeterministic, true),
           -- The hash of 7: the gateway compares it with its own.
           'probe', case
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.int2'::pg_catalog.regtype
                            then pg_catalog.hashint2(7::pg_catalog.int2)
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.int4'::pg_catalog.regtype
                            then pg_catalog.hashint4(7)
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.int8'::pg_catalog.regtype
                            then pg_catalog.hashint8(7)
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.text'::pg_catalog.regtype
                            then t.hash
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.varchar'::pg_catalog.regtype
                            then t.hash
                        when a.atttypid operator(pg_catalog.=) 'pg_catalog.uuid'::pg_catalog.regtype
                            then pg_catalog.uuid_hash('00000000-0000-0000-0000-000000000007')
                    end,
           -- What the role may do with each column, and whether it may delete rows.
           'privileges', pg_catalog.concat(
               pg_catalog.has_table_privilege(p.logicalrelid::pg_catalog.oid, 'delete'),
               (
                   select pg_catalog.string_agg(
                              pg_catalog.concat(
                                  ' ', m.attname,
                                  ' ', pg_catalog.has_column_privilege(m.attrelid, m.attnum, 'select'),
                                  pg_catalog.has_column_privilege(m.attrelid, m.attnum, 'insert'),
                                  pg_catalog.has_column_privilege(m.attrelid, m.attnum, 'update')
                              ),
                              '' order by m.attnum
                          )
                     from pg_catalog.pg_attribute m
                    where m.attrelid operator(pg_catalog.=) p.logicalrelid::pg_catalog.oid
                      and m.attnum operator(pg_catalog.>) 0::pg_catalog.int2
                      and not m.attisdropped
               )
           ),
           'local_node', (select g.groupid from pg_catalog.pg_dist_local_group g),
           'shards', coalesce((
               select pg_catalog.json_agg(
                          pg_catalog.json_build_object(
                              'id', s.shardid,
                              'least', s.shardminvalue::pg_catalog.int4,
                              'greatest', s.shardmaxvalue::pg_catalog.int4,
                              'node', o.groupid
                          )
                          order by s.shardminvalue::pg_catalog.int4
                      )
                 from pg_catalog.pg_dist_shard s
                 join pg_catalog.pg_dist_placement o on o.shardid operator(pg_catalog.=) s.shardid
                where s.logicalrelid operator(pg_catalog.=) p.logicalrelid
                  and o.shardstate operator(pg_catalog.=) 1
                  and p.partmethod operator(pg_catalog.=) 'h'::pg_catalog."char"
           ), '[]'),
           'nodes', coalesce((
               select pg_catalog.json_agg(
                          pg_catalog.json_build_object('id', n.groupid, 'host', n.nodename, 'port', n.nodeport)
                      )
                 from pg_catalog.pg_dist_node n
                where n.noderole operator(pg_catalog.=) 'primary'::pg_catalog.noderole
                  and n.isactive
                  and n.hasmetadata
                  and n.metadatasynced
           ), '[]')
       ) as facts
  from pg_catalog.pg_dist_partition p
  -- Citus keeps the column as an expression of the planner.
  left join lateral (
      select pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) as name
       where p.partkey is not null
  ) as c on true
  left join pg_catalog.pg_attribute a
    on a.attrelid operator(pg_catalog.=) p.logicalrelid::pg_catalog.oid
   and a.attname operator(pg_catalog.=) c.name::pg_catalog.name
  -- In other encodings, the server's bytes of a text are not those of the messages.
  left join lateral (
      select pg_catalog.hashtext('7') as hash
       where pg_catalog.getdatabaseencoding() operator(pg_catalog.=) any (array['UTF8', 'SQL_ASCII']::pg_catalog.name[])
  ) as t on true
  left join pg_catalog.pg_collation l on l.oid operator(pg_catalog.=) a.attcollation
 where p.logicalrelid operator(pg_catalog.=) pg_catalog.to_regclass($1::pg_catalog.text)
