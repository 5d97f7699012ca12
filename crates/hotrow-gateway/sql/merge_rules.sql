-- The merge rules for functions of these names, as one JSON array. Never changes anything.
-- $1: the functions' names. Asked only where hotrow.merge_rules exists (merge_rules_exist.sql), as the client's own role.
-- A rule counts only if its function and its twin belong to one owner: else somebody who made a schema of this name where
-- no pack is installed could have his function called under the client's rights in the place of the client's.
select coalesce(pg_catalog.json_agg(r.rule), '[]') as rules
  from pg_catalog.json_array_elements(hotrow.merge_rules($1::pg_catalog.text[])) as r (rule)
 where 1 = (select pg_catalog.count(distinct p.proowner)
              from pg_catalog.pg_proc p
              join pg_catalog.pg_namespace n on n.oid = p.pronamespace
             where (n.nspname = (r.rule ->> 'schema') and p.proname = (r.rule ->> 'name'))
                or (n.nspname = (r.rule ->> 'batch_schema') and p.proname = (r.rule ->> 'batch_name')))
