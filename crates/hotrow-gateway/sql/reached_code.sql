-- The code that can run because a text uses these names, as one JSON object: functions, and everything that they and the
-- tables, views, types and operators reach without naming it. Names within the code are looked up by the next query. Null
-- if there is more than $7. Changes nothing.
-- $1: names before a parenthesis. $2: names behind a dot: x.f is f(x). $3: operators. $4: names of relations and types that
-- the text reads, $5: that it may write. $6: whether it may fire event triggers.
-- Objects with an OID below 16384 are built in. They run no other code than their own. Functions of the hotrow schema leave no
-- state. Casts that users made can run wherever two types meet, so they are always among the code.
-- Runs on PostgreSQL 14 and later, as any role.
with recursive reached (kind, oid, writes) as (
    select 'function', p.oid, false
      from pg_catalog.pg_proc p
     where p.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and (p.proname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
            or p.proname operator(pg_catalog.=) any ($2::pg_catalog.text[]::pg_catalog.name[])
               and p.pronargs operator(pg_catalog.>) 0::pg_catalog.int2
               and p.pronargs operator(pg_catalog.-) p.pronargdefaults operator(pg_catalog.<=) 1::pg_catalog.int2)
    union all
    select 'function', o.oprcode::pg_catalog.oid, false
      from pg_catalog.pg_operator o
     where o.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and o.oprname operator(pg_catalog.=) any ($3::pg_catalog.text[]::pg_catalog.name[])
    union all
    -- The planner can put an operator's commutator or negator in its place.
    select 'function', other.oprcode::pg_catalog.oid, false
      from pg_catalog.pg_operator o
      join pg_catalog.pg_operator other on other.oid operator(pg_catalog.=) any (array[o.oprcom, o.oprnegate])
     where other.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and o.oprname operator(pg_catalog.=) any ($3::pg_catalog.text[]::pg_catalog.name[])
    union all
    select 'relation', c.oid, c.relname operator(pg_catalog.=) any ($5::pg_catalog.text[]::pg_catalog.name[])
      from pg_catalog.pg_class c
     where c.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and c.relkind operator(pg_catalog.=) any ('{r,p,v,m,f}'::pg_catalog."char"[])
       and c.relname operator(pg_catalog.=) any (
               pg_catalog.array_cat($4::pg_catalog.text[], $5::pg_catalog.text[])::pg_catalog.name[])
    union all
    select 'type', t.oid, false
      from pg_catalog.pg_type t
     where t.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and t.typname operator(pg_catalog.=) any (
               pg_catalog.array_cat($4::pg_catalog.text[], $5::pg_catalog.text[])::pg_catalog.name[])
    union all
    select 'function', k.castfunc, false
      from pg_catalog.pg_cast k
     where k.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
       and k.castfunc operator(pg_catalog.<>) 0::pg_catalog.oid
    union all
    select 'function', e.evtfoid, false
      from pg_catalog.pg_event_trigger e
     where $6::pg_catalog.bool
       and e.evtenabled operator(pg_catalog.<>) 'D'::pg_catalog."char"
    union
    select more.kind, more.oid, more.writes
      from reached r
     cross join lateral (
               -- The types of a function's arguments and results.
               select 'type', t.oid, false
                 from pg_catalog.pg_proc p
                cross join lateral pg_catalog.unnest(pg_catalog.array_append(
                          coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]), p.prorettype)) t (oid)
                where r.kind operator(pg_catalog.=) 'function'
                  and p.oid operator(pg_catalog.=) r.oid
               union all
               -- The functions of an aggregate.
               select 'function', f.oid::pg_catalog.oid, false
                 from pg_catalog.pg_aggregate a
                cross join lateral (values (a.aggtransfn), (a.aggfinalfn), (a.aggcombinefn), (a.aggserialfn),
                                           (a.aggdeserialfn), (a.aggmtransfn), (a.aggminvtransfn), (a.aggmfinalfn)) f (oid)
                where r.kind operator(pg_catalog.=) 'function'
                  and a.aggfnoid operator(pg_catalog.=) r.oid
                  and f.oid operator(pg_catalog.<>) 0::pg_catalog.oid
               union all
               -- Elements of an array, a domain's type, fields of a row.
               select 'type', part.oid, false
                 from pg_catalog.pg_type t
                cross join lateral (
                          values (t.typelem), (t.typbasetype)
                          union all
                          select f.atttypid
                            from pg_catalog.pg_attribute f
                           where f.attrelid operator(pg_catalog.=) t.typrelid
                             and f.attnum operator(pg_catalog.>) 0::pg_catalog.int2
                             and not f.attisdropped
                      ) part (oid)
                where r.kind operator(pg_catalog.=) 'type'
                  and t.oid operator(pg_catalog.=) r.oid
               union all
               select part.kind, part.oid, false
                 from pg_catalog.pg_range g
                cross join lateral (values ('type', g.rngsubtype), ('function', g.rngcanonical::pg_catalog.oid),
                                           ('function', g.rngsubdiff::pg_catalog.oid)) part (kind, oid)
                where r.kind operator(pg_catalog.=) 'type'
                  and r.oid operator(pg_catalog.=) any (array[g.rngtypid, g.rngmultitypid])
               union all
               select 'type', a.atttypid, false
                 from pg_catalog.pg_attribute a
                where r.kind operator(pg_catalog.=) 'relation'
                  and a.attrelid operator(pg_catalog.=) r.oid
                  and a.attnum operator(pg_catalog.>) 0::pg_catalog.int2
                  and not a.attisdropped
               union all
               -- Partitions, and other tables that inherit from it.
               select 'relation', h.inhrelid, r.writes
                 from pg_catalog.pg_inherits h
                where r.kind operator(pg_catalog.=) 'relation'
                  and h.inhparent operator(pg_catalog.=) r.oid
               union all
               -- Tables whose foreign keys change rows together with it.
               select 'relation', k.conrelid, true
                 from pg_catalog.pg_constraint k
                where r.kind operator(pg_catalog.=) 'relation'
                  and r.writes
                  and k.confrelid operator(pg_catalog.=) r.oid
                  and k.contype operator(pg_catalog.=) 'f'::pg_catalog."char"
                  and (k.confdeltype operator(pg_catalog.=) any ('{c,n,d}'::pg_catalog."char"[])
                       or k.confupdtype operator(pg_catalog.=) any ('{c,n,d}'::pg_catalog."char"[]))
               union all
               select 'function', g.tgfoid, false
                 from pg_catalog.pg_trigger g
                where r.kind operator(pg_catalog.=) 'relation'
                  and r.writes
                  and g.tgrelid operator(pg_catalog.=) r.oid
                  and not g.tgisinternal
                  and g.tgenabled operator(pg_catalog.<>) 'D'::pg_catalog."char"
           ) more (kind, oid, writes)
     where more.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
        or more.kind operator(pg_catalog.=) 'function' and more.oid operator(pg_catalog.<>) 0::pg_catalog.oid
),
-- Each text with the object from which it comes: to find the extension of that, and to know it again.
code (class, object, part, name, language, text, volatility, settings, writes) as (
    select 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, '', p.proname, l.lanname,
           case when l.lanname operator(pg_catalog.=) any ('{sql,plpgsql}'::pg_catalog.name[])
                then coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) end,
           p.provolatile, p.proconfig, false
      from reached r
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) r.oid
      join pg_catalog.pg_language l on l.oid operator(pg_catalog.=) p.prolang
     where r.kind operator(pg_catalog.=) 'function'
       -- An aggregate runs its functions, which are there too.
       and p.prokind operator(pg_catalog.<>) 'a'::pg_catalog."char"
       and p.pronamespace operator(pg_catalog.<>) all (array(
               select n.oid from pg_catalog.pg_namespace n where n.nspname operator(pg_catalog.=) 'hotrow'::pg_catalog.name))
    union all
    select 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 'defaults', p.proname, 'expression',
           pg_catalog.pg_get_expr(p.proargdefaults, 0::pg_catalog.oid), null, null, false
      from reached r
      join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) r.oid
     where r.kind operator(pg_catalog.=) 'function'
       and p.pronargdefaults operator(pg_catalog.>) 0::pg_catalog.int2
    union all
    -- A type whose functions are those of its owner: a superuser, or an extension.
    select 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, '', t.typname, 'c', null, 'v', null, false
      from reached r
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) r.oid
     where r.kind operator(pg_catalog.=) 'type'
       and t.typtype operator(pg_catalog.=) 'b'::pg_catalog."char"
       and t.typinput::pg_catalog.oid operator(pg_catalog.<>) 'pg_catalog.array_in'::pg_catalog.regproc::pg_catalog.oid
    union all
    select 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, own.part, t.typname, 'expression', own.text, null, null, false
      from reached r
      join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) r.oid
     cross join lateral (
               select 'default', pg_catalog.pg_get_expr(t.typdefaultbin, 0::pg_catalog.oid)
               union all
               select k.conname::pg_catalog.text, pg_catalog.pg_get_constraintdef(k.oid)
                 from pg_catalog.pg_constraint k
                where k.contypid operator(pg_catalog.=) t.oid
           ) own (part, text)
     where r.kind operator(pg_catalog.=) 'type'
    union all
    select 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, own.part, c.relname, 'expression', own.text, null, null, r.writes
      from reached r
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) r.oid
     cross join lateral (
               select 'view', pg_catalog.pg_get_viewdef(c.oid)
                where c.relkind operator(pg_catalog.=) 'v'::pg_catalog."char"
                   or c.relkind operator(pg_catalog.=) 'm'::pg_catalog."char" and r.writes
               union all
               select w.rulename::pg_catalog.text, pg_catalog.pg_get_ruledef(w.oid)
                 from pg_catalog.pg_rewrite w
                where w.ev_class operator(pg_catalog.=) c.oid
                  and w.rulename operator(pg_catalog.<>) '_RETURN'::pg_catalog.name
               union all
               select pg_catalog.concat(l.polname, ' ', which.part), pg_catalog.pg_get_expr(which.tree, l.polrelid)
                 from pg_catalog.pg_policy l
                cross join lateral (values ('using', l.polqual), ('check', l.polwithcheck)) which (part, tree)
                where l.polrelid operator(pg_catalog.=) c.oid
               union all
               -- Its condition.
               select g.tgname::pg_catalog.text, pg_catalog.pg_get_triggerdef(g.oid)
                 from pg_catalog.pg_trigger g
                where r.writes
                  and g.tgrelid operator(pg_catalog.=) c.oid
                  and g.tgqual is not null
               union all
               select pg_catalog.concat(d.adnum, ' default'), pg_catalog.pg_get_expr(d.adbin, d.adrelid)
                 from pg_catalog.pg_attribute a
                 join pg_catalog.pg_attrdef d
                   on d.adrelid operator(pg_catalog.=) a.attrelid
                  and d.adnum operator(pg_catalog.=) a.attnum
                where a.attrelid operator(pg_catalog.=) c.oid
                  and (r.writes or a.attgenerated operator(pg_catalog.<>) ''::pg_catalog."char")
               union all
               select pg_catalog.concat(a.attnum, ' identity'), 'pg_catalog.nextval(null)'
                 from pg_catalog.pg_attribute a
                where r.writes
                  and a.attrelid operator(pg_catalog.=) c.oid
                  and a.attidentity operator(pg_catalog.<>) ''::pg_catalog."char"
               union all
               -- The planner computes parts of checks and of indexes for statements that read, too.
               select k.conname::pg_catalog.text, pg_catalog.pg_get_constraintdef(k.oid)
                 from pg_catalog.pg_constraint k
                where k.conrelid operator(pg_catalog.=) c.oid
                  and k.contype operator(pg_catalog.=) any ('{c,x}'::pg_catalog."char"[])
               union all
               select pg_catalog.concat(i.indexrelid, ' ', which.part), pg_catalog.pg_get_expr(which.tree, i.indrelid)
                 from pg_catalog.pg_index i
                cross join lateral (values ('expressions', i.indexprs), ('predicate', i.indpred)) which (part, tree)
                where i.indrelid operator(pg_catalog.=) c.oid
               union all
               select pg_catalog.concat(s.oid, ' statistics'), pg_catalog.pg_get_expr(s.stxexprs, s.stxrelid)
                 from pg_catalog.pg_statistic_ext s
                where s.stxrelid operator(pg_catalog.=) c.oid
               union all
               select 'partition key', pg_catalog.pg_get_expr(k.partexprs, k.partrelid)
                 from pg_catalog.pg_partitioned_table k
                where k.partrelid operator(pg_catalog.=) c.oid
           ) own (part, text)
     where r.kind operator(pg_catalog.=) 'relation'
    union all
    -- Code in C below a table.
    select own.class, own.object, '', own.name, 'c', null, 'v', null, false
      from reached r
      join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) r.oid
     cross join lateral (
               select 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, c.relname
                where c.relkind operator(pg_catalog.=) 'f'::pg_catalog."char"
               union all
               select 'pg_catalog.pg_am'::pg_catalog.regclass, m.oid, m.amname
                 from pg_catalog.pg_class x
                 left join pg_catalog.pg_index i on i.indexrelid operator(pg_catalog.=) x.oid
                 join pg_catalog.pg_am m on m.oid operator(pg_catalog.=) x.relam
                where c.oid operator(pg_catalog.=) any (array[x.oid, i.indrelid])
                  and m.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
               union all
               select 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, o.opcname
                 from pg_catalog.pg_index i
                 join pg_catalog.pg_opclass o on o.oid operator(pg_catalog.=) any (i.indclass::pg_catalog.oid[])
                where i.indrelid operator(pg_catalog.=) c.oid
                  and o.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
               union all
               select 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, o.opcname
                 from pg_catalog.pg_partitioned_table k
                 join pg_catalog.pg_opclass o on o.oid operator(pg_catalog.=) any (k.partclass::pg_catalog.oid[])
                where k.partrelid operator(pg_catalog.=) c.oid
                  and o.oid operator(pg_catalog.>=) 16384::pg_catalog.oid
           ) own (class, object, name)
     where r.kind operator(pg_catalog.=) 'relation'
)
select case when pg_catalog.count(*) operator(pg_catalog.<=) $7::pg_catalog.int8 then pg_catalog.json_build_object(
           'built_in', (
               select coalesce(pg_catalog.json_agg(p.proname), '[]')
                 from pg_catalog.pg_proc p
                where p.oid operator(pg_catalog.<) 16384::pg_catalog.oid
                  and p.provolatile operator(pg_catalog.<>) 'i'::pg_catalog."char"
                  and p.proname operator(pg_catalog.=) any ($1::pg_catalog.text[]::pg_catalog.name[])
           ),
           'code', coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
               'id', pg_catalog.concat_ws(' ', d.class::pg_catalog.oid, d.object, d.writes, d.part),
               'built_in', d.object operator(pg_catalog.<) 16384::pg_catalog.oid,
               'name', d.name,
               'language', d.language,
               'text', d.text,
               'volatility', d.volatility::pg_catalog.text,
               'settings', d.settings,
               'writes', d.writes,
               'extension', (
                   select e.extname
                     from pg_catalog.pg_depend x
                     join pg_catalog.pg_extension e on e.oid operator(pg_catalog.=) x.refobjid
                    where x.classid operator(pg_catalog.=) d.class::pg_catalog.oid
                      and x.objid operator(pg_catalog.=) d.object
                      and x.refclassid operator(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
                      and x.deptype operator(pg_catalog.=) 'e'::pg_catalog."char"
               )
           -- A WHERE would compute the texts in the joins above, for other objects too.
           )) filter (where d.text is not null or d.language operator(pg_catalog.<>) 'expression'::pg_catalog.name), '[]')
       ) end
  from code d
