-- The merge rules for functions with these names, as one JSON array, and whether the database has Citus. Changes nothing.
-- $1: the functions' names. The query runs only if the pack is trusted (pack_trusted.sql), as the client's own role.
-- A rule counts only if its function and its batch function have the same owner. Otherwise the batch function of another role would run
-- with the client's rights in place of the function that the client has called. The merged call names the batch function, so no other
-- function may have its name: the arrays of a call with numbers can fit that one better.
select coalesce(pg_catalog.json_agg(r.rule), '[]') as rules, pg_catalog.to_regclass('pg_catalog.pg_dist_partition') is not null
  from pg_catalog.json_array_elements(hotrow.merge_rules($1::pg_catalog.text[])) as r (rule)
 where 1 operator(pg_catalog.=) (select pg_catalog.count(distinct p.proowner)
              from pg_catalog.pg_proc p
              join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) p.pronamespace
             where (n.nspname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'schema')
                    and p.proname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'name'))
                or (n.nspname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'batch_schema')
                    and p.proname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'batch_name')))
   and 1 operator(pg_catalog.=) (select pg_catalog.count(*)
              from pg_catalog.pg_proc p
              join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) p.pronamespace
             where n.nspname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'batch_schema')
               and p.proname operator(pg_catalog.=) (r.rule operator(pg_catalog.->>) 'batch_name'))
