-- The backlog of the feeds, for operators.

-- Returns how many posts have not reached all followers and since when the author that has waited longest has had no turn, and
-- how many followers wait because their inbox was locked. Each count stops at 10000, which bounds the cost. Takes no lock.
create function hotrow.feed_stats()
returns table (posts_queued bigint, waiting_since timestamptz, followers_left bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
        select (select count(*) from (select from hotrow.fan_out limit 10000) queued),
            (select t.at from hotrow.fan_out_turn t order by t.at, t.author limit 1),
            (select count(*) from (select from hotrow.fan_out_left limit 10000) remaining);
end
$$;
