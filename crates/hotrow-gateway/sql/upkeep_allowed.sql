-- Whether the pack is there with its upkeep and this role may call it. A superuser calls only what belongs, with its schema,
-- to superusers or to himself: else somebody who made a schema of this name would have his code run by him.
select pg_catalog.has_function_privilege(p.oid, 'execute')
       and (not me.rolsuper or (f.rolsuper or f.oid = me.oid) and (s.rolsuper or s.oid = me.oid))
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  join pg_catalog.pg_roles f on f.oid = p.proowner
  join pg_catalog.pg_roles s on s.oid = n.nspowner
  join pg_catalog.pg_roles me on me.rolname = current_user
 where n.nspname = 'hotrow' and p.proname = 'keep' and p.pronargs = 0
