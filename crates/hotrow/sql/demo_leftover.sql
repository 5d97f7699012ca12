-- Whether the schema exists, and whether a killed demo left it (then it carries the demo's comment).
select coalesce(obj_description(oid, 'pg_namespace') = 'made by hotrow demo, removed when it ends', false)
from pg_namespace
where nspname = 'hotrow_demo'
