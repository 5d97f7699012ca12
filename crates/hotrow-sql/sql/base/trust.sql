-- The installer's query about the schema, before it runs anything there. Returns one row, or none if there is no schema.
--
-- Objects in a schema can run code with the rights of the roles that use them: a trigger, a view, a function in the place of
-- one of the pack's. SET ROLE is no protection, because such code can reset it. The installer therefore works only in a schema
-- that belongs to the role that has logged in, or to a superuser, and in which no other role has created anything or can do
-- so. Then no other role can change anything between this query and the statements that follow it. Only names of pg_catalog
-- are used; the search_path is pinned before.
select n.nspowner::regrole::text as owner,
    n.nspowner = me.oid as mine,
    n.nspowner = me.oid or o.rolsuper as trusted,
    me.rolsuper as superuser,
    (select t.thing from (
        select format('%s may create objects in it', coalesce(nullif(a.grantee, 0)::regrole::text, 'everybody')) as thing,
            a.grantee as by
        from aclexplode(n.nspacl) a where a.privilege_type = 'CREATE'
        union all
        select format('%s may create triggers on %s', coalesce(nullif(a.grantee, 0)::regrole::text, 'everybody'), c.oid::regclass),
            a.grantee
        from pg_class c cross join aclexplode(c.relacl) a where c.relnamespace = n.oid and a.privilege_type = 'TRIGGER'
        union all
        select format('%s belongs to %s', c.oid::regclass, c.relowner::regrole), c.relowner
        from pg_class c where c.relnamespace = n.oid
        union all
        select format('%s belongs to %s', p.oid::regprocedure, p.proowner::regrole), p.proowner
        from pg_proc p where p.pronamespace = n.oid
        union all
        select format('%s belongs to %s', y.oid::regtype, y.typowner::regrole), y.typowner
        from pg_type y where y.typnamespace = n.oid
        union all
        select format('%s belongs to %s', q.oid::regoperator, q.oprowner::regrole), q.oprowner
        from pg_operator q where q.oprnamespace = n.oid
        union all
        select format('the trigger %I on %s calls %s, which belongs to %s', g.tgname, c.oid::regclass, p.oid::regprocedure,
            p.proowner::regrole), p.proowner
        from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_proc p on p.oid = g.tgfoid
        where c.relnamespace = n.oid and not g.tgisinternal) t
    where t.by <> n.nspowner and not exists (select from pg_roles r where r.oid = t.by and r.rolsuper)
    order by t.thing limit 1) as foreign_thing
from pg_namespace n join pg_roles o on o.oid = n.nspowner join pg_roles me on me.rolname = session_user
where n.nspname = 'hotrow'
