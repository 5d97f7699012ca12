-- The tables of a shard on its node: the name in the migrations, and the name there.
-- $1: the shard's schema.
select c.relname::text, c.relname || '_' || s.shardid
from pg_dist_shard s join pg_class c on c.oid = s.logicalrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1
