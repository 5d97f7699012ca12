-- Whether this role can ask for merge rules here. Never changes anything, and never fails.
select coalesce(
           pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('hotrow.merge_rules(text[])'), 'execute')
           and pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('hotrow'), 'usage'),
           false
       ) as can_ask
