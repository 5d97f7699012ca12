-- What exists outside pg_catalog under the names a statement or table uses, as one JSON array. Never changes anything.
-- $1: the names of functions, operators and types. Runs on PostgreSQL 14 and later, as any role.
-- Tables, functions and types are qualified so that search_path can't put others in their place.
with namesake as (
    select p.pronamespace as namespace,
           p.proname as name,
           'function' as kind,
           pg_catalog.pg_function_is_visible(p.oid) as visible,
           p.provolatile as volatility,
           p.prokind <> 'f'::pg_catalog."char" as special,
           'pg_catalog.pg_proc'::pg_catalog.regclass as catalogue,
           p.oid as object
      from pg_catalog.pg_proc p
     where p.proname = any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    select o.oprnamespace,
           o.oprname,
           'operator',
           pg_catalog.pg_operator_is_visible(o.oid),
           p.provolatile,
           false,
           'pg_catalog.pg_operator'::pg_catalog.regclass,
           o.oid
      from pg_catalog.pg_operator o
      join pg_catalog.pg_proc p on p.oid = o.oprcode
     where o.oprname = any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    select t.typnamespace,
           t.typname,
           'type',
           pg_catalog.pg_type_is_visible(t.oid),
           null,
           false,
           'pg_catalog.pg_type'::pg_catalog.regclass,
           t.oid
      from pg_catalog.pg_type t
     where t.typname = any ($1::pg_catalog.text[]::pg_catalog.name[])
)
select coalesce(
           pg_catalog.json_agg(
               pg_catalog.json_build_object(
                   'schema', n.nspname,
                   'name', s.name,
                   'kind', s.kind,
                   'visible', s.visible,
                   'volatility', s.volatility::pg_catalog.text,
                   'special', s.special,
                   'extension', e.extname
               )
           ),
           '[]'
       ) as facts
  from namesake s
  join pg_catalog.pg_namespace n on n.oid = s.namespace
  left join pg_catalog.pg_depend d
         on d.classid = s.catalogue::pg_catalog.oid
        and d.objid = s.object
        and d.deptype = 'e'::pg_catalog."char"
  left join pg_catalog.pg_extension e on e.oid = d.refobjid
 where n.nspname <> 'pg_catalog'::pg_catalog.name
