-- Every part of the catalog that decides how a statement on one table is understood, as one short text. It changes
-- whenever the table's definition changes, also if the change is undone later. It does not change when the table is
-- truncated, vacuumed or analyzed. The query changes nothing.
-- $1: the table's name as to_regclass accepts it. $2: the fingerprint that the caller relies on; empty to ask for it.
-- If $2 is another fingerprint, the last column divides by zero, which rolls back the transaction.
-- Runs on PostgreSQL 14 and later, as any role.
with recursive root as (
    select pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid as oid
),
-- The table and its partitions, at any depth. For a view, also the relations that it reads.
tree (oid) as (
    select r.oid from root r
    union
    select part.oid
      from tree t
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) t.oid
     cross join lateral (
               select h.inhrelid as oid
                 from pg_catalog.pg_inherits h
                where h.inhparent operator(pg_catalog.=) t.oid
                  and c.relkind operator(pg_catalog.=) 'p'::pg_catalog."char"
               union all
               select d.refobjid
                 from pg_catalog.pg_rewrite r
                 join pg_catalog.pg_depend d
                   on d.classid operator(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid
                  and d.objid operator(pg_catalog.=) r.oid
                where r.ev_class operator(pg_catalog.=) t.oid
                  and c.relkind operator(pg_catalog.=) 'v'::pg_catalog."char"
                  and d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
           ) part
),
-- The planner expects few rows of an array, and uses the indexes of the catalog.
relation as (
    select c.oid, c.relnamespace, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
           -- Row security does not apply to the owner.
           case when c.relrowsecurity then c.relowner end as exempt,
           -- Options decide what a view does, but not what a table does.
           case when c.relkind operator(pg_catalog.=) 'v'::pg_catalog."char" then c.reloptions end as options
      from pg_catalog.unnest(array(select t.oid from tree t)) as member (oid)
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) member.oid
),
attribute as (
    select a.attrelid, a.attnum, a.atttypid, a.xmin
      from relation c
      join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) c.oid
     where a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
),
-- The types of the columns, the base types of domains, the elements of arrays and the columns of composite
-- types, at any depth. A composite type can contain an array of its own type: UNION ends the recursion.
layer (oid) as (
    select a.atttypid
      from attribute a
    union
    select part.oid
      from layer l
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) l.oid
     cross join lateral (
               select t.typbasetype as oid
               union all
               select t.typelem
               union all
               select a.atttypid
                 from pg_catalog.pg_attribute a
                where a.attrelid operator(pg_catalog.=) t.typrelid
                  and a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
           ) part
     where part.oid operator(pg_catalog.<>) 0::pg_catalog.oid
),
type as (
    select t.oid, t.typrelid, t.xmin
      from layer l
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) l.oid
),
trigger_function as (
    select p.oid, p.xmin, p.pronamespace, p.proname
      from relation c
      join pg_catalog.pg_trigger g on g.tgrelid operator(pg_catalog.=) c.oid
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) g.tgfoid
     where not g.tgisinternal
),
-- TRUNCATE rewrites the table's own row, so its columns are listed. Each other row counts by the transaction that wrote
-- it.
part (version) as (
    select pg_catalog.concat('table ', c.oid, ' ', c.relnamespace, ' ', c.relname, ' ', c.relkind, c.relpersistence,
                             c.relrowsecurity, c.relforcerowsecurity, c.exempt, c.options)
      from relation c
    union all
    select pg_catalog.concat('column ', a.attrelid, ' ', a.attnum, ' ', a.xmin) from attribute a
    union all
    select pg_catalog.concat('type ', t.oid, ' ', t.xmin) from type t
    union all
    select pg_catalog.concat('label ', e.oid, ' ', e.xmin)
      from type t join pg_catalog.pg_enum e on e.enumtypid operator(pg_catalog.=) t.oid
    union all
    select pg_catalog.concat('field ', a.attrelid, ' ', a.attnum, ' ', a.xmin)
      from type t join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) t.typrelid
     where a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
    union all
    -- Users' casts between built-in types are facts of each statement: function_facts.sql.
    select pg_catalog.concat('cast ', k.oid, ' ', p.xmin)
      from type t
      join pg_catalog.pg_cast k on t.oid operator(pg_catalog.=) any (array[k.castsource, k.casttarget])
      left join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) k.castfunc
     where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
    union all
    select pg_catalog.concat('default ', d.oid, ' ', d.xmin)
      from relation c join pg_catalog.pg_attrdef d on d.adrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('constraint ', k.oid, ' ', k.xmin)
      from relation c join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('referrer ', k.oid, ' ', k.xmin)
      from relation c join pg_catalog.pg_constraint k on k.confrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('check ', k.oid, ' ', k.xmin)
      from type t join pg_catalog.pg_constraint k on k.contypid operator(pg_catalog.=) t.oid
    union all
    select pg_catalog.concat('index ', i.indexrelid, ' ', i.xmin)
      from relation c join pg_catalog.pg_index i on i.indrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('trigger ', g.oid, ' ', g.xmin)
      from relation c join pg_catalog.pg_trigger g on g.tgrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('function ', p.oid, ' ', p.xmin) from trigger_function p
    union all
    select pg_catalog.concat('rule ', r.oid, ' ', r.xmin)
      from relation c join pg_catalog.pg_rewrite r on r.ev_class operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('policy ', p.oid, ' ', p.xmin)
      from relation c join pg_catalog.pg_policy p on p.polrelid operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('child ', h.inhrelid, ' ', h.xmin)
      from relation c join pg_catalog.pg_inherits h on h.inhparent operator(pg_catalog.=) c.oid
    union all
    select pg_catalog.concat('parent ', h.inhparent, ' ', h.xmin)
      from root r join pg_catalog.pg_inherits h on h.inhrelid operator(pg_catalog.=) r.oid
),
fingerprint (text) as (
    select pg_catalog.md5(pg_catalog.string_agg(p.version, ',' order by p.version)) from part p
)
select (select r.oid from root r),
       f.text,
       -- Functions that the client's role can name. A statement that mentions them is analysed again when they change.
       (select pg_catalog.json_agg(distinct pg_catalog.format('%I.%I', n.nspname, p.proname))
          from trigger_function p
          join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) p.pronamespace
         where pg_catalog.has_schema_privilege(n.oid, 'usage')),
       1 operator(pg_catalog./) (case when $2::pg_catalog.text operator(pg_catalog.=) any (array['', f.text]) then 1 else 0 end)
  from fingerprint f
