-- The number of sent messages plus the number of consumed ones, and the number of Hotrow's inboxes that do not contain all
-- messages that they have numbered, or that have a reader with a higher number.
with by_hand as (
    select count(*) as sent, count(*) filter (where status = 1) as consumed, count(*) filter (where status not in (0, 1)) as broken
    from hotrow_bench.feed
),
entry as (
    select user_id, count(*) as entries, max(number) as last from hotrow.inbox_entry group by user_id
),
hotrow as (
    select coalesce(sum(e.entries), 0) as sent, coalesce(sum(r.read_to), 0) as consumed,
        count(*) filter (where (e.entries, e.last) is distinct from (i.last, i.last) or r.read_to > i.last
            or not isempty(r.taken)) as broken
    from hotrow.inbox i full join entry e using (user_id) full join hotrow.reader r using (user_id)
    where coalesce(i.last, 0) > 0 or e.entries > 0 or r.read_to > 0
)
select (b.sent + b.consumed + h.sent + h.consumed)::bigint as done, (b.broken + h.broken)::bigint as broken
from by_hand b, hotrow h
