-- Whether the schema exists, and whether it has the demo's comment: then a killed demo left it.
select coalesce(obj_description(oid, 'pg_namespace') = 'made by hotrow demo, removed when it ends', false)
from pg_namespace
where nspname = 'hotrow_demo'
