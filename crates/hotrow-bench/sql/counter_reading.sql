-- The number of executed commands in the histories, and the number of entries that do not follow from the previous one, plus
-- counters whose row does not match the end of their history.
with entry as (
    select keeper, counter, version, value,
        version = 1 + lag(version, 1, 0::bigint) over history
            and value = case command
                when 'drain' then 0
                else lag(value, 1, 0::bigint) over history + amount
            end as follows,
        lead(version) over history is null as last
    from hotrow_bench.entry
    window history as (partition by keeper, counter order by version)
),
command as (
    select counter, version, amount,
        max(version) filter (where command = 'drain') over (partition by counter) as drained
    from hotrow.command_log
),
folded as (
    select counter, count(*) as commands, max(version) as version,
        coalesce(sum(amount) filter (where version > coalesce(drained, 0)), 0) as value
    from command group by counter
)
select
    ((select count(*) from entry)
        + (select count(*) from hotrow.command_log)
        + (select count(*) from hotrow_bench.application_log))::bigint as done,
    ((select count(*) from entry where not follows)
        + (select count(*) from hotrow_bench.standing s left join entry e using (keeper, counter)
            where coalesce(e.last, true) and (s.version, s.value) <> (coalesce(e.version, 0), coalesce(e.value, 0)))
        + (select count(*) from hotrow.counter c
                cross join lateral hotrow.counter(c.counter) as said
                left join folded f using (counter)
            where c.strategy = 'log'
                and (said.version, said.value, c.version) <> (coalesce(f.version, 0), coalesce(f.value, 0), coalesce(f.commands, 0)))
    )::bigint as broken
