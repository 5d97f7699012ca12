-- The views through which a name reaches one other relation, as one JSON value: the outermost view first, and the OID of the
-- relation below them. Null if the name is no view, or if one of the views reads several relations. Changes nothing.
-- $1: the view's name as to_regclass accepts it. $2: the most views, one above the other, that are followed.
-- Runs on PostgreSQL 14 and later, as any role.
with recursive chain (oid, depth) as (
    select pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid, 0
    union all
    -- A view's rule depends on all that the view reads, a sequence too.
    select below.oid, v.depth operator(pg_catalog.+) 1
      from chain v
     cross join lateral (
               select pg_catalog.min(d.refobjid) as oid
                 from pg_catalog.pg_class c
                 join pg_catalog.pg_rewrite r on r.ev_class operator(pg_catalog.=) c.oid
                 join pg_catalog.pg_depend d
                   on d.classid operator(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid
                  and d.objid operator(pg_catalog.=) r.oid
                where c.oid operator(pg_catalog.=) v.oid
                  and c.relkind operator(pg_catalog.=) 'v'::pg_catalog."char"
                  and d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                  and d.refobjid operator(pg_catalog.<>) v.oid
               having pg_catalog.count(distinct d.refobjid) operator(pg_catalog.=) 1::pg_catalog.int8
           ) below
     where v.depth operator(pg_catalog.<) $2::pg_catalog.int4
),
relation as (
    select c.oid, c.relnamespace, c.relname, c.relkind, c.relpersistence, c.reloptions, l.depth
      from chain l
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) l.oid
),
view_fact (depth, fact) as (
    select c.depth,
           pg_catalog.json_build_object(
               'oid', c.oid::pg_catalog.int8,
               'schema', n.nspname,
               'name', c.relname,
               'persistence', c.relpersistence::pg_catalog.text,
               'columns', (
                   select pg_catalog.json_agg(a.attname order by a.attnum)
                     from pg_catalog.pg_attribute a
                    where a.attrelid operator(pg_catalog.=) c.oid
                      and a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
               ),
               'definition', pg_catalog.pg_get_viewdef(c.oid),
               'has_rules', exists (
                   select
                     from pg_catalog.pg_rewrite r
                    where r.ev_class operator(pg_catalog.=) c.oid
                      and r.rulename operator(pg_catalog.<>) '_RETURN'::pg_catalog.name
               ),
               -- A view with an INSTEAD OF trigger is not updated automatically, even if the trigger is disabled.
               'has_triggers', exists (
                   select from pg_catalog.pg_trigger g where g.tgrelid operator(pg_catalog.=) c.oid
               ),
               'has_defaults', exists (
                   select from pg_catalog.pg_attrdef d where d.adrelid operator(pg_catalog.=) c.oid
               ),
               'security_barrier', exists (
                   select
                     from pg_catalog.pg_options_to_table(c.reloptions) as o (name, value)
                    where o.name operator(pg_catalog.=) 'security_barrier'
                      and o.value::pg_catalog.bool
               )
           )
      from relation c
      join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where c.relkind operator(pg_catalog.=) 'v'::pg_catalog."char"
)
select pg_catalog.json_build_object(
           'base', b.oid::pg_catalog.int8,
           'views', (select pg_catalog.json_agg(f.fact order by f.depth) from view_fact f)
       ) as facts
  from relation b
 where b.relkind operator(pg_catalog.<>) 'v'::pg_catalog."char"
   and b.depth operator(pg_catalog.>) 0
