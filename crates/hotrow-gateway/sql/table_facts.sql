-- What the catalogue says about one table, as one JSON value; null when there is no such table. Never changes anything.
-- $1: the table's name as to_regclass takes it. Runs on PostgreSQL 14 and later, as any role.
-- Tables, functions and types are qualified so that search_path can't put others in their place; operators compare
-- values of one type, for which pg_catalog's own are an exact match and are found first.
with recursive relation as (
    select c.*
      from pg_catalog.pg_class c
     where c.oid = pg_catalog.to_regclass($1::pg_catalog.text)
),
attribute as (
    select a.*
      from relation c
      join pg_catalog.pg_attribute a on a.attrelid = c.oid
     where a.attnum > 0::pg_catalog.int2
       and not a.attisdropped
),
-- Each column's type and all it is made of: a domain over an array of an enumeration is three rows.
layer (attnum, type, in_array) as (
    select a.attnum, a.atttypid, false
      from attribute a
    union all
    select l.attnum,
           case when t.typtype = 'd'::pg_catalog."char" then t.typbasetype else t.typelem end,
           l.in_array or t.typtype <> 'd'::pg_catalog."char"
      from layer l
      join pg_catalog.pg_type t on t.oid = l.type
     where t.typtype = 'd'::pg_catalog."char"
        or (t.typcategory = 'A'::pg_catalog."char" and t.typelem <> 0::pg_catalog.oid)
),
-- What a value is made of in the end decides what code may run: code of PostgreSQL's own, of an extension (only a
-- superuser can add base types), or a user's. Casts that users wrote could run when a value
-- is assigned, or made JSON.
kind as (
    select l.attnum,
           pg_catalog.bool_and(n.nspname = 'pg_catalog'::pg_catalog.name) as builtin,
           pg_catalog.bool_and(
               case t.typtype
                    when 'b'::pg_catalog."char" then true
                    when 'e'::pg_catalog."char" then true
                    when 'd'::pg_catalog."char" then true
                    else n.nspname = 'pg_catalog'::pg_catalog.name and t.typtype <> 'c'::pg_catalog."char"
               end
               and (n.nspname = 'pg_catalog'::pg_catalog.name or not exists (
                   select
                     from pg_catalog.pg_cast k
                     join pg_catalog.pg_proc p on p.oid = k.castfunc
                     join pg_catalog.pg_namespace pn on pn.oid = p.pronamespace
                    where (k.castsource = t.oid or k.casttarget = t.oid)
                      and pn.nspname <> 'pg_catalog'::pg_catalog.name
                      and p.provolatile <> 'i'::pg_catalog."char"
               ))
           ) as harmless
      from layer l
      join pg_catalog.pg_type t on t.oid = l.type
      join pg_catalog.pg_namespace n on n.oid = t.typnamespace
     group by l.attnum
),
column_fact as (
    select a.attnum,
           pg_catalog.json_build_object(
               'name', a.attname,
               'attnum', a.attnum,
               'type_oid', (
                   select l.type::pg_catalog.int8
                     from layer l
                     join pg_catalog.pg_type t on t.oid = l.type
                    where l.attnum = a.attnum
                      and not l.in_array
                      and t.typtype <> 'd'::pg_catalog."char"
               ),
               'type_name', pg_catalog.format_type(a.atttypid, a.atttypmod),
               'type_kind', case when k.builtin and k.harmless then 'builtin'
                                 when k.harmless then 'harmless'
                                 else 'other' end,
               'avg_width', coalesce(
                   (select pg_catalog.max(s.avg_width)
                      from pg_catalog.pg_stats s
                     where s.schemaname = n.nspname and s.tablename = c.relname and s.attname = a.attname),
                   case when a.attlen > 0::pg_catalog.int2 then a.attlen::pg_catalog.int4 end,
                   32
               ),
               'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
               'generated', a.attgenerated <> ''::pg_catalog."char",
               'identity', a.attidentity <> ''::pg_catalog."char"
           ) as fact
      from attribute a
      join relation c on c.oid = a.attrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      join kind k on k.attnum = a.attnum
      left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
),
-- Only an index that holds for every row at every moment can say which row a statement means.
index_fact as (
    select pg_catalog.json_build_object(
               'name', x.relname,
               'primary', i.indisprimary,
               'columns', (
                   select pg_catalog.json_agg(a.attname order by part.place)
                     from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as part (attnum, place)
                     join attribute a on a.attnum = part.attnum
                    where part.place <= i.indnkeyatts::pg_catalog.int8
               )
           ) as fact
      from relation c
      join pg_catalog.pg_index i on i.indrelid = c.oid
      join pg_catalog.pg_class x on x.oid = i.indexrelid
     where i.indisunique
       and i.indisvalid
       and i.indisready
       and i.indimmediate
       and i.indpred is null
       and i.indexprs is null
),
-- Enabled triggers that a user made; those of foreign keys are internal.
trigger_fact as (
    select pg_catalog.json_build_object(
               'name', g.tgname,
               'language', l.lanname,
               'source', p.prosrc,
               'special', p.prosecdef or p.proconfig is not null,
               'condition', case when g.tgqual is not null then
                   coalesce(
                       pg_catalog.substring(
                           pg_catalog.pg_get_triggerdef(g.oid), ' WHEN (\(.*\)) EXECUTE (?:FUNCTION|PROCEDURE) '
                       ),
                       pg_catalog.pg_get_triggerdef(g.oid)
                   )
               end,
               'on_insert', g.tgtype & 4::pg_catalog.int2 <> 0::pg_catalog.int2,
               'on_delete', g.tgtype & 8::pg_catalog.int2 <> 0::pg_catalog.int2,
               'on_update', g.tgtype & 16::pg_catalog.int2 <> 0::pg_catalog.int2
           ) as fact
      from relation c
      join pg_catalog.pg_trigger g on g.tgrelid = c.oid
      join pg_catalog.pg_proc p on p.oid = g.tgfoid
      join pg_catalog.pg_language l on l.oid = p.prolang
     where not g.tgisinternal
       and g.tgenabled <> 'D'::pg_catalog."char"
),
expression_fact as (
    select pg_catalog.pg_get_constraintdef(k.oid) as fact
      from relation c
      join pg_catalog.pg_constraint k on k.conrelid = c.oid
     where k.contype = 'c'::pg_catalog."char"
    union all
    select pg_catalog.pg_get_constraintdef(k.oid)
      from layer l
      join pg_catalog.pg_constraint k on k.contypid = l.type
     where k.contype = 'c'::pg_catalog."char"
    union all
    select pg_catalog.pg_get_expr(stored.tree, i.indrelid)
      from relation c
      join pg_catalog.pg_index i on i.indrelid = c.oid
     cross join lateral (values (i.indexprs), (i.indpred)) as stored (tree)
     where stored.tree is not null
),
-- Foreign keys that refer to this table, which may change rows of their own when a row here changes.
referrer_fact as (
    select pg_catalog.json_build_object(
               'table', k.conrelid::pg_catalog.regclass::pg_catalog.text,
               'columns', (
                   select pg_catalog.json_agg(a.attname)
                     from attribute a
                    where a.attnum = any (k.confkey)
               ),
               'acts_on_delete', k.confdeltype in ('c'::pg_catalog."char", 'n'::pg_catalog."char", 'd'::pg_catalog."char"),
               'deferred', k.condeferred,
               'acts_on_update', k.confupdtype in ('c'::pg_catalog."char", 'n'::pg_catalog."char", 'd'::pg_catalog."char")
           ) as fact
      from relation c
      join pg_catalog.pg_constraint k on k.confrelid = c.oid
     where k.contype = 'f'::pg_catalog."char"
)
select pg_catalog.json_build_object(
           'oid', c.oid::pg_catalog.int8,
           'schema', n.nspname,
           'name', c.relname,
           'relkind', c.relkind::pg_catalog.text,
           'persistence', c.relpersistence::pg_catalog.text,
           'has_rules', exists (select from pg_catalog.pg_rewrite r where r.ev_class = c.oid),
           'row_security', c.relrowsecurity,
           'has_children', exists (select from pg_catalog.pg_inherits h where h.inhparent = c.oid),
           'is_partition', c.relispartition,
           'deferrable', exists (
               select
                 from pg_catalog.pg_constraint k
                where k.conrelid = c.oid
                  and k.condeferrable
                  and k.contype <> 'f'::pg_catalog."char"
           ),
           -- A deferred foreign key is judged at commit, where another unit's row could save or spoil it.
           'deferred_columns', coalesce((
               select pg_catalog.json_agg(distinct a.attname)
                 from pg_catalog.pg_constraint k
                 join attribute a on a.attnum = any (k.conkey)
                where k.conrelid = c.oid
                  and k.condeferred
                  and k.contype = 'f'::pg_catalog."char"
           ), '[]'),
           'columns', coalesce((select pg_catalog.json_agg(f.fact order by f.attnum) from column_fact f), '[]'),
           'unique_indexes', coalesce((select pg_catalog.json_agg(f.fact) from index_fact f), '[]'),
           'triggers', coalesce((select pg_catalog.json_agg(f.fact) from trigger_fact f), '[]'),
           'expressions', coalesce((select pg_catalog.json_agg(f.fact) from expression_fact f), '[]'),
           'referrers', coalesce((select pg_catalog.json_agg(f.fact) from referrer_fact f), '[]')
       ) as facts
  from relation c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
