-- Objects outside pg_catalog with the names that a statement or table uses, as one JSON array. Changes nothing.
-- $1: the names of functions, operators, types and collations, and text values that can be names: the server reads the
-- constant in nextval('s') or to_tsvector('english', ...) when it analyses a statement.
-- Casts that users made between built-in types are always reported, because any statement can use one without naming
-- it. The settings that decide how constants are read are always reported too. Objects with an OID below 16384 are
-- built in.
-- Runs on PostgreSQL 14 and later, as any role.
-- Tables, functions and types are qualified. Otherwise search_path could put other objects in their place.
with recursive wild (type) as (
    -- Types with a cast that can run a user's code; see table_facts.sql.
    select pg_catalog.unnest(array[k.castsource, k.casttarget])
      from pg_catalog.pg_cast k
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) k.castfunc
      join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) p.prolang
     where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and (p.provolatile operator(pg_catalog.<>) 'i'::pg_catalog."char"
            or l.lanname operator(pg_catalog.<>) all ('{c,internal}'::pg_catalog.name[]))
),
-- Types with these names and their parts: elements of arrays, fields of rows.
made_of (name, type) as (
    select t.oid, t.oid
      from pg_catalog.pg_type t
     where t.typname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
    union
    select m.name, part.type
      from made_of m
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) m.type
     cross join lateral (
               select t.typelem
                where t.typcategory operator(pg_catalog.=) 'A'::pg_catalog."char"
                  and t.typelem operator(pg_catalog.<>) 0::pg_catalog.oid
               union all
               select f.atttypid
                 from pg_catalog.pg_attribute f
                where f.attrelid operator(pg_catalog.=) t.typrelid
                  and f.attnum operator(pg_catalog.>) 0::pg_catalog.int2
                  and not f.attisdropped
           ) part (type)
),
namesake as (
    select p.pronamespace as namespace,
           p.proname as name,
           'function' as kind,
           pg_catalog.pg_function_is_visible(p.oid) as visible,
           p.provolatile as volatility,
           p.prokind operator(pg_catalog.<>) 'f'::pg_catalog."char" or p.proretset or p.prosecdef or p.proconfig is not null
           -- The source does not show the code that is run by a default of an argument, a domain (also within a row),
           -- the functions of a range type, or a cast. The names of objects in constants are not followed.
           or p.pronargdefaults operator(pg_catalog.>) 0::pg_catalog.int2
           or exists (
               select
                 from pg_catalog.pg_type a
                 join pg_catalog.pg_type t
                   on t.oid operator(pg_catalog.=) case when a.typcategory operator(pg_catalog.=) 'A'::pg_catalog."char"
                                                         and a.typelem operator(pg_catalog.<>) 0::pg_catalog.oid
                                                        then a.typelem else a.oid end
                where a.oid operator(pg_catalog.=) any (
                          pg_catalog.array_append(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]), p.prorettype)
                      )
                  and (t.typtype operator(pg_catalog.=) 'd'::pg_catalog."char"
                       or t.typname operator(pg_catalog.=) any (
                               '{regclass,regcollation,regconfig,regdictionary,regnamespace,regoper,regoperator,regproc,
                                 regprocedure,regrole,regtype}'::pg_catalog.name[])
                       or t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
                          and (t.typtype operator(pg_catalog.=) any ('{r,m}'::pg_catalog."char"[])
                               or t.oid operator(pg_catalog.=) any (select w.type from wild w)
                               or exists (
                                   select
                                     from pg_catalog.pg_attribute f
                                     join pg_catalog.pg_type ft on ft.oid operator(pg_catalog.=) f.atttypid
                                     left join pg_catalog.pg_type fe on fe.oid operator(pg_catalog.=) ft.typelem
                                    where f.attrelid operator(pg_catalog.=) t.typrelid
                                      and f.attnum operator(pg_catalog.>) 0::pg_catalog.int2
                                      and (ft.typtype operator(pg_catalog.=) any ('{c,d}'::pg_catalog."char"[])
                                           or fe.typtype operator(pg_catalog.=) any ('{c,d}'::pg_catalog."char"[]))
                               )))
           ) as special,
           p.prolang as language,
           coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as source,
           'pg_catalog.pg_proc'::pg_catalog.regclass as catalog,
           p.oid as object,
           p.xmin::pg_catalog.text as written
      from pg_catalog.pg_proc p
     where p.proname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    select o.oprnamespace,
           o.oprname,
           'operator',
           pg_catalog.pg_operator_is_visible(o.oid),
           p.provolatile,
           p.prosecdef or p.proconfig is not null
               or exists (
                   select
                     from wild w
                    where w.type operator(pg_catalog.>=) 16384::pg_catalog.oid
                      and w.type operator(pg_catalog.=) any (array[o.oprleft, o.oprright, o.oprresult])
               ),
           p.prolang,
           coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc),
           'pg_catalog.pg_operator'::pg_catalog.regclass,
           o.oid,
           o.xmin::pg_catalog.text
      from pg_catalog.pg_operator o
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) o.oprcode
     where o.oprname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    select t.typnamespace,
           t.typname,
           'type',
           pg_catalog.pg_type_is_visible(t.oid),
           null,
           -- A domain has checks and a default. A user's or an extension's type has functions. Both count at any depth.
           exists (
               select
                 from made_of m
                 join pg_catalog.pg_type u on u.oid operator(pg_catalog.=) m.type
                where m.name operator(pg_catalog.=) t.oid
                  and (u.typtype operator(pg_catalog.=) 'd'::pg_catalog."char"
                       or u.oid operator(pg_catalog.=) any (select w.type from wild w)
                       or u.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
                          and u.typtype operator(pg_catalog.<>) all ('{c,e}'::pg_catalog."char"[])
                          and u.typcategory operator(pg_catalog.<>) 'A'::pg_catalog."char")
           ),
           null,
           null,
           'pg_catalog.pg_type'::pg_catalog.regclass,
           t.oid,
           t.xmin::pg_catalog.text
      from pg_catalog.pg_type t
     where t.typname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    -- Objects that a constant or a COLLATE clause can name. The server computes to_tsquery('c', 'a word') when it plans
    -- a statement, and does not plan it again after a change of the configuration or of a dictionary. So their
    -- definitions count too.
    select o.namespace, o.name, o.kind, o.visible, null, false, null, null, o.catalog, o.oid, o.written
      from (
               -- Temporary tables of other sessions are left out, because they come and go.
               select c.oid, c.relnamespace, c.relname, 'relation', pg_catalog.pg_table_is_visible(c.oid),
                      'pg_catalog.pg_class'::pg_catalog.regclass, null
                 from pg_catalog.pg_class c
                where c.relpersistence operator(pg_catalog.<>) 't'::pg_catalog."char"
               union all
               select c.oid, c.cfgnamespace, c.cfgname, 'text search configuration',
                      pg_catalog.pg_ts_config_is_visible(c.oid), 'pg_catalog.pg_ts_config'::pg_catalog.regclass,
                      (select pg_catalog.string_agg(
                                  pg_catalog.concat(m.maptokentype, ' ', m.mapseqno, ' ', m.mapdict, ' ', d.xmin), ','
                                  order by m.maptokentype, m.mapseqno
                              )
                         from pg_catalog.pg_ts_config_map m
                         join pg_catalog.pg_ts_dict d on d.oid operator(pg_catalog.=) m.mapdict
                        where m.mapcfg operator(pg_catalog.=) c.oid)
                 from pg_catalog.pg_ts_config c
               union all
               select d.oid, d.dictnamespace, d.dictname, 'text search dictionary',
                      pg_catalog.pg_ts_dict_is_visible(d.oid), 'pg_catalog.pg_ts_dict'::pg_catalog.regclass,
                      d.xmin::pg_catalog.text
                 from pg_catalog.pg_ts_dict d
               union all
               select c.oid, c.collnamespace, c.collname, 'collation',
                      pg_catalog.pg_collation_is_visible(c.oid), 'pg_catalog.pg_collation'::pg_catalog.regclass, null
                 from pg_catalog.pg_collation c
           ) o (oid, namespace, name, kind, visible, catalog, written)
     where o.name operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
    union all
    -- How the server reads a constant such as timestamptz '2020-01-01' when it analyses a statement. A reload of the
    -- server's configuration changes these settings on open connections.
    select 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid,
           pg_catalog.concat(s.name, ' = ', pg_catalog.current_setting(s.name)),
           'setting', true, null, false, null, null,
           'pg_catalog.pg_class'::pg_catalog.regclass, 0::pg_catalog.oid, null
      from pg_catalog.unnest('{DateStyle,IntervalStyle,TimeZone,timezone_abbreviations,lc_monetary,array_nulls,
                               transform_null_equals}'::pg_catalog.text[]) as s (name)
    union all
    select coalesce(p.pronamespace, 'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid),
           pg_catalog.format('%s as %s', pg_catalog.format_type(k.castsource, null), pg_catalog.format_type(k.casttarget, null)),
           'cast',
           true,
           p.provolatile,
           coalesce(p.prosecdef or p.proconfig is not null, false),
           p.prolang,
           coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc),
           'pg_catalog.pg_cast'::pg_catalog.regclass,
           k.oid,
           coalesce(p.xmin, k.xmin)::pg_catalog.text
      from pg_catalog.pg_cast k
      left join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) k.castfunc
     where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and k.castsource operator(pg_catalog.<) 16384::pg_catalog.oid
       and k.casttarget operator(pg_catalog.<) 16384::pg_catalog.oid
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
                   'language', l.lanname,
                   'source', s.source,
                   'extension', e.extname,
                   'version', pg_catalog.concat(s.object, ' ', s.written)
               )
               order by s.kind, s.object, s.name
           ),
           '[]'
       ) as facts
  from namesake s
  join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) s.namespace
  left join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) s.language
  left join pg_catalog.pg_depend d
         on d.classid operator(pg_catalog.=) s.catalog::pg_catalog.oid
        and d.objid operator(pg_catalog.=) s.object
        and d.deptype operator(pg_catalog.=) 'e'::pg_catalog."char"
  left join pg_catalog.pg_extension e on e.oid operator(pg_catalog.=) d.refobjid
 -- The visibility of an object is null if it was dropped after the query's snapshot was taken.
 where s.visible is not null
   and (n.nspname operator(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
        or s.kind operator(pg_catalog.=) any (
               '{cast,setting,text search configuration,text search dictionary}'::pg_catalog.text[]
           ))
