-- The catalog's facts about one table, as one JSON value; null if the table does not exist. Changes nothing.
-- $1: the table's name as to_regclass accepts it, with its identifiers quoted; or the table's OID, because a role that can
-- use a view may lack the right to name the table below. $2: the most partitions that a packed table can have.
-- Runs on PostgreSQL 14 and later, as any role.
-- Tables, functions, types and operators are qualified. The owner of a database can set its search_path for every role,
-- and could otherwise put operators with the owner's code in front of those of pg_catalog.
with recursive relation as (
    select c.*
      from pg_catalog.pg_class c
     where c.oid operator(pg_catalog.=) case
               when $1::pg_catalog.text operator(pg_catalog.~) '^[0-9]+$' then $1::pg_catalog.text::pg_catalog.oid
               else pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid
           end
),
-- A partitioned table and its partitions, at any depth. Each of them can have triggers, constraints, indexes and generated
-- columns of its own, which run for its rows.
tree (oid, kind, pending) as (
    select c.oid, c.relkind, false
      from relation c
    union all
    select c.oid, c.relkind, h.inhdetachpending
      from tree t
      join pg_catalog.pg_inherits h on h.inhparent operator(pg_catalog.=) t.oid
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) h.inhrelid
     where t.kind operator(pg_catalog.=) 'p'::pg_catalog."char"
),
-- A table with more partitions than this is not packed, and its partitions are not looked at.
too_many (partitions) as (
    select pg_catalog.count(*) operator(pg_catalog.>) (1 operator(pg_catalog.+) $2::pg_catalog.int4) from tree
),
-- The planner expects few rows of an array, and uses the indexes of the catalog.
family as (
    select c.oid, c.relname, c.relkind, c.relrowsecurity,
           exists (select from pg_catalog.pg_rewrite r where r.ev_class operator(pg_catalog.=) c.oid) as has_rules
      from pg_catalog.unnest(
               case when (select m.partitions from too_many m) then array(select r.oid from relation r)
                    else array(select t.oid from tree t) end
           ) as member (oid)
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) member.oid
),
attribute as (
    select a.*
      from relation c
      join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) c.oid
     where a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
       and not a.attisdropped
),
-- Each column's type and its parts: a domain over an array of an enumeration has three rows.
layer (attnum, type, modifier, in_array) as (
    select a.attnum, a.atttypid, a.atttypmod, false
      from attribute a
    union all
    select l.attnum,
           case when t.typtype operator(pg_catalog.=) 'd'::pg_catalog."char" then t.typbasetype else t.typelem end,
           case when t.typtype operator(pg_catalog.=) 'd'::pg_catalog."char" then t.typtypmod else l.modifier end,
           l.in_array or t.typtype operator(pg_catalog.<>) 'd'::pg_catalog."char"
      from layer l
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) l.type
     where t.typtype operator(pg_catalog.=) 'd'::pg_catalog."char"
        or (t.typcategory operator(pg_catalog.=) 'A'::pg_catalog."char"
            and t.typelem operator(pg_catalog.<>) 0::pg_catalog.oid)
),
-- The innermost parts of a value decide which code may run: built-in code, code of an extension (only a superuser can
-- add base types), or a user's code. Casts that users wrote could run when a value is assigned or converted to JSON.
-- Objects with an OID below 16384 are built in. Users' casts between two built-in types concern every statement:
-- function_facts.sql reports them.
kind as (
    select l.attnum,
           pg_catalog.bool_and(l.type operator(pg_catalog.<) 16384::pg_catalog.oid) as builtin,
           pg_catalog.bool_and(
               -- The default of a domain is an expression too. A literal of a type like regclass is resolved when a
               -- statement is analysed, and means another object after that object is dropped and created again.
               t.typdefault is null
               and t.typname operator(pg_catalog.<>) all (
                   '{regclass,regcollation,regconfig,regdictionary,regnamespace,regoper,regoperator,regproc,regprocedure,
                     regrole,regtype}'::pg_catalog.name[])
               and (t.typtype operator(pg_catalog.=) any ('{b,e,d}'::pg_catalog."char"[])
                or (t.oid operator(pg_catalog.<) 16384::pg_catalog.oid and t.typtype operator(pg_catalog.<>) 'c'::pg_catalog."char"))
               and (t.oid operator(pg_catalog.<) 16384::pg_catalog.oid or not exists (
                   select
                     from pg_catalog.pg_cast k
                     join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) k.castfunc
                     join pg_catalog.pg_language f on f.oid operator(pg_catalog.=) p.prolang
                    where (k.castsource operator(pg_catalog.=) t.oid or k.casttarget operator(pg_catalog.=) t.oid)
                      -- Only a superuser can add functions in C. Extensions' functions are trusted to be what they are
                      -- declared to be.
                      and (p.provolatile operator(pg_catalog.<>) 'i'::pg_catalog."char" or f.lanname operator(pg_catalog.<>) all ('{c,internal}'::pg_catalog.name[]))
               ))
           ) as harmless
      from layer l
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) l.type
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
                     join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) l.type
                    where l.attnum operator(pg_catalog.=) a.attnum
                      and not l.in_array
                      and t.typtype operator(pg_catalog.<>) 'd'::pg_catalog."char"
               ),
               -- A statement can cast to the column's own type, if that is an enumeration or a domain.
               'own_type', (
                   select pg_catalog.json_build_object(
                              'schema', s.nspname,
                              'name', t.typname,
                              'is_domain', t.typtype operator(pg_catalog.=) 'd'::pg_catalog."char"
                          )
                     from pg_catalog.pg_type t
                     join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) t.typnamespace
                    where t.oid operator(pg_catalog.=) a.atttypid
                      and t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
                      and t.typtype operator(pg_catalog.=) any ('{d,e}'::pg_catalog."char"[])
               ),
               'type_kind', case when k.builtin and k.harmless then 'builtin'
                                 when k.harmless then 'harmless'
                                 else 'other' end,
               -- `interval minute`: the upper half of the modifier has a bit for each field. All 15 bits stand for no
               -- restriction.
               'interval_fields', exists (
                   select
                     from layer l
                    where l.attnum operator(pg_catalog.=) a.attnum
                      and l.type operator(pg_catalog.=) 'pg_catalog.interval'::pg_catalog.regtype::pg_catalog.oid
                      and not l.in_array
                      and l.modifier operator(pg_catalog.>=) 0
                      and (l.modifier operator(pg_catalog.>>) 16) operator(pg_catalog.&) 32767 operator(pg_catalog.<>) 32767
               ),
               'avg_width', coalesce(
                   (select pg_catalog.max(s.avg_width)
                      from pg_catalog.pg_stats s
                     where s.schemaname operator(pg_catalog.=) n.nspname
                       and s.tablename operator(pg_catalog.=) c.relname
                       and s.attname operator(pg_catalog.=) a.attname),
                   case when a.attlen operator(pg_catalog.>) 0::pg_catalog.int2 then a.attlen::pg_catalog.int4 end,
                   32
               ),
               'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
               'generated', a.attgenerated operator(pg_catalog.<>) ''::pg_catalog."char",
               'identity', a.attidentity operator(pg_catalog.<>) ''::pg_catalog."char",
               -- Each connection takes several values at once and hands them out one by one.
               'cached_sequence', exists (
                   select
                     from pg_catalog.pg_depend p
                     join pg_catalog.pg_sequence s
                       on s.seqrelid operator(pg_catalog.=) case
                              when p.classid operator(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
                              then p.refobjid else p.objid end
                    where s.seqcache operator(pg_catalog.>) 1::pg_catalog.int8
                      and ((p.classid operator(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid
                            and p.objid operator(pg_catalog.=) d.oid
                            and p.refclassid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid)
                        or (p.classid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                            and p.refclassid operator(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                            and p.refobjid operator(pg_catalog.=) c.oid
                            and p.refobjsubid operator(pg_catalog.=) a.attnum::pg_catalog.int4
                            and p.deptype operator(pg_catalog.=) 'i'::pg_catalog."char"))
               )
           ) as fact
      from attribute a
      join relation c on c.oid operator(pg_catalog.=) a.attrelid
      join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
      join kind k on k.attnum operator(pg_catalog.=) a.attnum
      left join pg_catalog.pg_attrdef d
             on d.adrelid operator(pg_catalog.=) a.attrelid
            and d.adnum operator(pg_catalog.=) a.attnum
),
-- Only an index that holds for every row at every moment identifies the row that a statement means.
index_fact as (
    select pg_catalog.json_build_object(
               'name', x.relname,
               'primary', i.indisprimary,
               'columns', (
                   select pg_catalog.json_agg(a.attname order by part.place)
                     from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as part (attnum, place)
                     join attribute a on a.attnum operator(pg_catalog.=) part.attnum
                    where part.place operator(pg_catalog.<=) i.indnkeyatts::pg_catalog.int8
               )
           ) as fact
      from relation c
      join pg_catalog.pg_index i on i.indrelid operator(pg_catalog.=) c.oid
      join pg_catalog.pg_class x on x.oid operator(pg_catalog.=) i.indexrelid
     where i.indisunique
       and i.indisvalid
       and i.indisready
       and i.indimmediate
       and i.indpred is null
       and i.indexprs is null
),
-- Enabled triggers that a user made. Triggers of foreign keys are internal.
trigger_fact as (
    select pg_catalog.jsonb_build_object(
               'name', g.tgname,
               'language', l.lanname,
               'source', p.prosrc,
               -- The check at a batch's end cannot mention a function that the role cannot name.
               'special', p.prosecdef or p.proconfig is not null
                          or not pg_catalog.has_schema_privilege(p.pronamespace, 'usage'),
               'condition', case when g.tgqual is not null then
                   coalesce(
                       pg_catalog.substring(
                           pg_catalog.pg_get_triggerdef(g.oid), ' WHEN (\(.*\)) EXECUTE (?:FUNCTION|PROCEDURE) '
                       ),
                       pg_catalog.pg_get_triggerdef(g.oid)
                   )
               end,
               'on_insert', g.tgtype operator(pg_catalog.&) 4::pg_catalog.int2 operator(pg_catalog.<>) 0::pg_catalog.int2,
               'on_delete', g.tgtype operator(pg_catalog.&) 8::pg_catalog.int2 operator(pg_catalog.<>) 0::pg_catalog.int2,
               'on_update', g.tgtype operator(pg_catalog.&) 16::pg_catalog.int2 operator(pg_catalog.<>) 0::pg_catalog.int2
           ) as fact
      from family c
      join pg_catalog.pg_trigger g on g.tgrelid operator(pg_catalog.=) c.oid
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) g.tgfoid
      join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) p.prolang
     where not g.tgisinternal
       and g.tgenabled operator(pg_catalog.<>) 'D'::pg_catalog."char"
     group by 1
),
expression_fact as (
    select pg_catalog.pg_get_constraintdef(k.oid) as fact
      from family c
      join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) c.oid
     where k.contype operator(pg_catalog.=) 'c'::pg_catalog."char"
    union
    select pg_catalog.pg_get_constraintdef(k.oid)
      from layer l
      join pg_catalog.pg_constraint k on k.contypid operator(pg_catalog.=) l.type
     where k.contype operator(pg_catalog.=) 'c'::pg_catalog."char"
    union
    select pg_catalog.pg_get_expr(stored.tree, i.indrelid)
      from family c
      join pg_catalog.pg_index i on i.indrelid operator(pg_catalog.=) c.oid
     cross join lateral (values (i.indexprs), (i.indpred)) as stored (tree)
     where stored.tree is not null
    union
    -- A partition can generate a column by another expression.
    select pg_catalog.pg_get_expr(d.adbin, d.adrelid)
      from family c
      join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) c.oid
      join pg_catalog.pg_attrdef d
        on d.adrelid operator(pg_catalog.=) a.attrelid
       and d.adnum operator(pg_catalog.=) a.attnum
     where a.attgenerated operator(pg_catalog.<>) ''::pg_catalog."char"
       and c.oid operator(pg_catalog.<>) all (select r.oid from relation r)
),
-- Foreign keys that refer to this table. They can change rows of their own tables when a row here changes.
referrer_fact as (
    select pg_catalog.jsonb_build_object(
               'table', k.conrelid::pg_catalog.regclass::pg_catalog.text,
               'columns', (
                   select pg_catalog.json_agg(a.attname order by a.attname)
                     from pg_catalog.pg_attribute a
                    where a.attrelid operator(pg_catalog.=) c.oid
                      and a.attnum operator(pg_catalog.=) any (k.confkey)
               ),
               'acts_on_delete', k.confdeltype operator(pg_catalog.=) any ('{c,n,d}'::pg_catalog."char"[]),
               'deferred', k.condeferred,
               'acts_on_update', k.confupdtype operator(pg_catalog.=) any ('{c,n,d}'::pg_catalog."char"[])
           ) as fact
      from family c
      join pg_catalog.pg_constraint k on k.confrelid operator(pg_catalog.=) c.oid
     where k.contype operator(pg_catalog.=) 'f'::pg_catalog."char"
     group by 1
),
-- The columns that decide in which partition a row is.
partition_key as (
    select a.attname
      from family c
      join pg_catalog.pg_partitioned_table p on p.partrelid operator(pg_catalog.=) c.oid
      join pg_catalog.pg_attribute a
        on a.attrelid operator(pg_catalog.=) c.oid
       and a.attnum operator(pg_catalog.=) any (p.partattrs::pg_catalog.int2[])
),
-- A partition that makes it impossible to tell what a statement on the table does.
odd_partition (why) as (
    select pg_catalog.concat('has more than ', $2, ' partitions') from too_many m where m.partitions
    union all
    select 'has a partition that is being detached' from tree t where t.pending
    union all
    select 'is partitioned by an expression'
      from family c
      join pg_catalog.pg_partitioned_table p on p.partrelid operator(pg_catalog.=) c.oid
     where p.partexprs is not null
    union all
    select pg_catalog.concat('has the partition ', c.relname, case
               when c.has_rules then ', which is rewritten by rules'
               when c.relrowsecurity then ', which is under row security'
               else ', which is not an ordinary table'
           end)
      from family c
     where c.oid operator(pg_catalog.<>) all (select r.oid from relation r)
       and (c.has_rules or c.relrowsecurity or c.relkind operator(pg_catalog.<>) all ('{r,p}'::pg_catalog."char"[]))
)
select pg_catalog.json_build_object(
           'oid', c.oid::pg_catalog.int8,
           'schema', n.nspname,
           'name', c.relname,
           'relkind', c.relkind::pg_catalog.text,
           'persistence', c.relpersistence::pg_catalog.text,
           'has_rules', exists (select from pg_catalog.pg_rewrite r where r.ev_class operator(pg_catalog.=) c.oid),
           -- It does not apply to the owner. Below a view, it applies to the view's owner.
           'row_security', c.relrowsecurity
               and (c.relforcerowsecurity
                    or $1::pg_catalog.text operator(pg_catalog.~) '^[0-9]+$'
                    or c.relowner operator(pg_catalog.<>) (
                           select r.oid from pg_catalog.pg_roles r where r.rolname operator(pg_catalog.=) current_user
                       )),
           'has_citus', pg_catalog.to_regclass('pg_catalog.pg_dist_partition') is not null,
           'has_children', exists (select from pg_catalog.pg_inherits h where h.inhparent operator(pg_catalog.=) c.oid),
           'is_partition', c.relispartition,
           'partitions', coalesce((
               select pg_catalog.json_agg(f.oid::pg_catalog.int8 order by f.oid)
                 from family f
                where f.oid operator(pg_catalog.<>) c.oid
           ), '[]'),
           'partition_key', coalesce((select pg_catalog.json_agg(distinct p.attname) from partition_key p), '[]'),
           'odd_partition', (select pg_catalog.min(o.why) from odd_partition o),
           'deferrable', exists (
               select
                 from family f
                 join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) f.oid
                where k.condeferrable
                  and k.contype operator(pg_catalog.<>) 'f'::pg_catalog."char"
           ),
           -- A deferred foreign key is checked at commit, where another unit's row could make it valid or invalid.
           'deferred_columns', coalesce((
               select pg_catalog.json_agg(distinct a.attname)
                 from family f
                 join pg_catalog.pg_constraint k on k.conrelid operator(pg_catalog.=) f.oid
                 join pg_catalog.pg_attribute a
                   on a.attrelid operator(pg_catalog.=) f.oid
                  and a.attnum operator(pg_catalog.=) any (k.conkey)
                where k.condeferred
                  and k.contype operator(pg_catalog.=) 'f'::pg_catalog."char"
           ), '[]'),
           'columns', coalesce((select pg_catalog.json_agg(f.fact order by f.attnum) from column_fact f), '[]'),
           'unique_indexes', coalesce((select pg_catalog.json_agg(f.fact) from index_fact f), '[]'),
           'triggers', coalesce((select pg_catalog.json_agg(f.fact) from trigger_fact f), '[]'),
           -- A constraint that is dropped while this query runs has no definition any more. The fingerprint is older, so the first
           -- batch notices the change.
           'expressions', coalesce((
               -- A WHERE would evaluate the definition twice.
               select pg_catalog.json_agg(f.fact) filter (where f.fact is not null) from expression_fact f
           ), '[]'),
           'referrers', coalesce((select pg_catalog.json_agg(f.fact) from referrer_fact f), '[]')
       ) as facts
  from relation c
  join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
