-- A page of the counters, for operators.

-- Lists counters after a name, each with its settings and its value. A counter with the strategy log is computed from its
-- history, so a page of many of those costs as much as reading each of them. Takes no lock.
create function hotrow.list_counters(after text default '', max int default 100)
returns table (counter text, strategy text, minimum bigint, maximum bigint, value bigint, version bigint, changed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    if after is null or max is null then
        perform hotrow.null_argument('after or max');
    elsif max not between 1 and 1000 then
        perform hotrow.bad_argument(format('max is %s', max), 'List 1 to 1000 counters at a time.');
    end if;
    return query
        select c.counter, c.strategy, c.min, c.max, v.value, v.version, nullif(c.last_at, '-infinity') from (
            select k.counter, k.strategy, k.min, k.max, k.last_at from hotrow.counter k
            where k.counter > list_counters.after order by k.counter limit list_counters.max) c
            cross join lateral hotrow.counter(c.counter) v
        order by c.counter;
end
$$;
