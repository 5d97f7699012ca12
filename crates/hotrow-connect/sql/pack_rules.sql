-- The pack rules for functions with these names, as one JSON array, and whether the database has Citus. Changes nothing.
-- $1: the functions' names. The query runs only if the pack is trusted (pack_trusted.sql), as the client's own role.
select hotrow.pack_rules($1::pg_catalog.text[]), pg_catalog.to_regclass('pg_catalog.pg_dist_partition') is not null
