-- The functions that the API calls and that are not there, or that this user may not call.
select function
from pg_catalog.unnest(array[
    'hotrow.create_counter(text, text, bigint, bigint)',
    'hotrow.counter(text)',
    'hotrow.increment(text, bigint, uuid)',
    'hotrow.drain(text, uuid)',
    'hotrow.create_sale(text, bigint, bigint, timestamptz, timestamptz, interval)',
    'hotrow.sale(text)',
    'hotrow.reserve(text, text, bigint, uuid, boolean)',
    'hotrow.reserve_all(text[], bigint[], text, uuid)',
    'hotrow.confirm(uuid)',
    'hotrow.cancel(uuid)',
    'hotrow.extend(uuid, interval)',
    'hotrow.restock(text, bigint, uuid)'
]) as function
where pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(function), 'execute') is not true
