-- Sizes in bytes of the tables of the hotrow schema and of the load, with TOAST, and of their indexes. Partitions count as their table.
-- A table that is dropped meanwhile has no size.
select coalesce(json_object_agg(name, json_build_array(tables, indexes)), '{}')
from (
    select n.nspname || '.' || whole.relname as name,
           coalesce(sum(pg_catalog.pg_table_size(part.oid)), 0) as tables,
           coalesce(sum(pg_catalog.pg_indexes_size(part.oid)), 0) as indexes
    from pg_catalog.pg_class part
    join pg_catalog.pg_class whole on whole.oid = coalesce(pg_catalog.pg_partition_root(part.oid), part.oid)
    join pg_catalog.pg_namespace n on n.oid = whole.relnamespace
    where part.relkind = 'r' and n.nspname in ('hotrow', 'proof')
    group by name
) sizes
