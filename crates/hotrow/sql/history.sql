-- The history of one counter ($1) or of all counters, in order: the counter's row, then each command, followed by the
-- snapshot of the state after it. It has the commands after version $2 up to $3, and the snapshots from $2 on. A row of the
-- log has at most 1000 commands, and the version of the last one.
select h.counter, h.version, h.kind, h.command, h.amount, h.value, h.returned, h.at, h.min, h.max, h.strategy
from (
    -- The row is sorted before its history. Its own version is in the column `returned`.
    select c.counter, -1::bigint as version, 0 as kind, null::text as command, null::bigint as amount, c.value,
        c.version as returned, null::timestamptz as at, c.min, c.max, c.strategy
    from hotrow.counter c where $1::text is null or c.counter = $1
    union all
    select l.counter, l.version, 1, l.command, l.amount, l.value, l.returned, l.at, null, null, null
    from hotrow.ledger l where ($1 is null or l.counter = $1) and l.version > $2 and l.version <= $3
    union all
    select l.counter, l.version, 2, l.command, l.amount, null, null, l.at, null, null, null
    from (
        select e.counter, e.version - cardinality(e.amounts) + c.place as version, e.command, c.amount, e.at
        from hotrow.log_entry e cross join lateral unnest(e.amounts) with ordinality c (amount, place)
        where ($1 is null or e.counter = $1) and e.version > $2 and e.version <= least($3, 9223372036854774807) + 1000
    ) l
    where l.version > $2 and l.version <= $3
    union all
    select s.counter, s.version, 3, null, null, s.value, null, s.at, null, null, null
    from hotrow.snapshot s where ($1 is null or s.counter = $1) and s.version >= $2 and s.version <= $3
) h
order by h.counter, h.version, h.kind
