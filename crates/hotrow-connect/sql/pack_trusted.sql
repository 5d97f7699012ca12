-- Whether the hotrow schema exists and this role may run its code, and whether a certain function of it exists and this
-- role may call it. A second column says whether the schema exists. Returns one row always. Reads only the catalog, never fails
-- and changes nothing.
--
-- The functions of the pack run with the rights of the calling role or of their owner. The gateway calls them on behalf
-- of clients that have not asked for them. Any role that may create schemas can make one with this name. The pack is
-- therefore trusted only if one role owns the schema and every function in it, and that role is one of these:
--   - a superuser,
--   - the role that asks,
--   - the owner of the database, which can choose the search_path of every role that connects,
--   - the role of the upstream URL, which the operator has chosen. On managed PostgreSQL it usually owns the pack.
-- A superuser trusts only superusers. This rule covers both the role that has logged in and the current role, because
-- the database's owner can choose the current role.
-- $1: the role of the upstream URL.
-- $2: the function's name; empty to ask about the pack as a whole.
-- $3: the types of its parameters: OIDs separated by spaces.
select coalesce(
           pg_catalog.bool_and(p.proowner operator(pg_catalog.=) o.oid)
           and pg_catalog.bool_or(
               $2::pg_catalog.text operator(pg_catalog.=) ''
               or p.proname operator(pg_catalog.=) $2::pg_catalog.text
                  and p.proargtypes operator(pg_catalog.=) $3::pg_catalog.text::pg_catalog.oidvector
                  and pg_catalog.has_function_privilege(p.oid, 'execute')
                  and pg_catalog.has_schema_privilege(s.oid, 'usage')),
           false),
       exists (select from pg_catalog.pg_namespace where nspname operator(pg_catalog.=) 'hotrow')
  from pg_catalog.pg_namespace s
  join pg_catalog.pg_roles o on o.oid operator(pg_catalog.=) s.nspowner
  join pg_catalog.pg_proc p on p.pronamespace operator(pg_catalog.=) s.oid
 where s.nspname operator(pg_catalog.=) 'hotrow'
   and (o.rolsuper
        or not exists (
               select from pg_catalog.pg_roles me
                where me.rolsuper and me.rolname operator(pg_catalog.=) any (array[session_user, current_user]))
           and (o.rolname operator(pg_catalog.=) any (array[session_user, $1::pg_catalog.name])
                or o.oid operator(pg_catalog.=) (
                       select d.datdba from pg_catalog.pg_database d
                        where d.datname operator(pg_catalog.=) pg_catalog.current_database())))
