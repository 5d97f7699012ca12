-- The recorded calls of reserve: item, client, number, 1 if reserved, remaining.
select split_part(item, ' ', 3)::int, ('x' || substr(request_id::text, 1, 8))::bit(32)::int,
    ('x' || substr(request_id::text, 25))::bit(48)::bigint, (status = 'reserved')::int, coalesce(remaining, 0)
from hotrow.request where command = 'reserve'
