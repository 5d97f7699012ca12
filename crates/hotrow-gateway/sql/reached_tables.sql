-- The tables and views outside the system's schemas that have one of these names, as one JSON array: the name, and the quoted name
-- with the schema.
-- Null if a cast with a user's function exists, because it could run wherever two types meet. Changes nothing.
-- $1: the names that a statement mentions. Runs on PostgreSQL 14 and later, as any role.
select case when not exists (
           select
             from pg_catalog.pg_cast k
             join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) k.castfunc
             left join pg_catalog.pg_depend d
                    on d.classid operator(pg_catalog.=) 'pg_catalog.pg_cast'::pg_catalog.regclass::pg_catalog.oid
                   and d.objid operator(pg_catalog.=) k.oid
                   and d.deptype operator(pg_catalog.=) 'e'::pg_catalog."char"
             join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) p.prolang
            where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
              -- Casts between built-in types are judged with the statement's functions: function_facts.sql.
              and (k.castsource operator(pg_catalog.>=) 16384::pg_catalog.oid
                   or k.casttarget operator(pg_catalog.>=) 16384::pg_catalog.oid)
              and (p.provolatile operator(pg_catalog.<>) 'i'::pg_catalog."char"
                   or l.lanname operator(pg_catalog.<>) all ('{c,internal}'::pg_catalog.name[]))
              and d.objid is null
       ) then (
           select coalesce(
                      pg_catalog.json_agg(
                          pg_catalog.json_build_object(
                              'name', c.relname, 'table', pg_catalog.format('%I.%I', n.nspname, c.relname))),
                      '[]')
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
            where c.relname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
              and c.relkind operator(pg_catalog.=) any ('{r,p,v,m,f}'::pg_catalog."char"[])
              and n.nspname operator(pg_catalog.<>) all (array['pg_catalog'::pg_catalog.name, 'information_schema'])
       ) end as tables
