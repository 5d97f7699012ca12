-- The history of all counters: counter, version, client, number, amount, value. The log of a counter has no values, so they are
-- the sums of its amounts.
with command as (
    select counter, version, request_id, amount, value from hotrow.ledger
    union all
    select counter, version, request_id, amount, sum(amount) over (partition by counter order by version)
    from hotrow.command_log
)
select split_part(counter, ' ', 3)::int, version, ('x' || substr(request_id::text, 1, 8))::bit(32)::int,
    ('x' || substr(request_id::text, 25))::bit(48)::bigint, amount, value
from command order by counter, version
