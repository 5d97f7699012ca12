-- Whether the database has Hotrow's queues and this role can use them.
select count(distinct p.proname) = 8 as are_there
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = 'hotrow'
    and p.proname in ('create_queue', 'enqueue', 'take', 'complete', 'fail', 'redrive', 'find_order', 'list_orders')
    and pg_catalog.has_schema_privilege(n.oid, 'usage') and pg_catalog.has_function_privilege(p.oid, 'execute')
