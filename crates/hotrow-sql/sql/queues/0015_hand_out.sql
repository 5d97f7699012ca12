-- Hands out orders in their order, each to one call. Other files define how callers ask, and how orders end.

-- The orders that the head hands out next, in order: a composite of arrays with one element for each order.
create type hotrow.queue_chunk as (
    lines smallint[], places bigint[], ids bigint[], ranks bigint[], groups bigint[], attempts smallint[]);

-- Finds the next orders in the general case: the least ranks of the ready orders and of the main line. Orders of the main line
-- whose group has an open order are put aside on the way. An order that is leased opens its group. An order that is done at
-- once leaves its group, and the search begins again after it, because other orders of the group can come next. Such a search
-- therefore looks at few orders at a time. It ends after 100 rounds, which keeps each call short.
create function hotrow.next_orders(inout head hotrow.queue_head, most int, done_at_once boolean, out chunk hotrow.queue_chunk)
language plpgsql as $$
declare
    seen record;
    walked int := 0;
    searches int := 0;
    window_size int := case when done_at_once then least(most, 50) else most end;
    stop boolean := false;
begin
    while not stop and walked < 5000 and searches < 100 and coalesce(cardinality(chunk.ids), 0) < most loop
        with ready as (
            (select r.line, r.place, r.id, r.rank, r.group_hash, r.attempt, false as fresh, r.ctid as tid
            from hotrow.queue_ready r
            where r.queue = head.queue and r.shard = head.shard and r.generation = head.ready_generation
            order by r.queue, r.shard, r.generation, r.rank, r.id limit window_size)
            union all
            (select r.line, r.place, r.id, r.rank, r.group_hash, r.attempt, false, r.ctid
            from hotrow.queue_ready r
            where head.ready_left > 0
                and r.queue = head.queue and r.shard = head.shard and r.generation = head.ready_generation - 1
                and (r.rank, r.id) > (head.ready_mark_rank, head.ready_mark_id)
            order by r.queue, r.shard, r.generation, r.rank, r.id limit window_size)
        ), fresh as (
            select o.line, o.place, o.id, o.place as rank, o.group_hash, 0::smallint as attempt, true as fresh, null::tid as tid
            from hotrow.queue_order o
            where o.queue = head.queue and o.line = head.shard * 2 and (o.place, o.id) > (head.place, head.id)
            order by o.queue, o.line, o.place, o.id limit greatest(window_size, 100)
        ), both_kinds as (
            select b.*, row_number() over (order by b.rank, b.id) as n from (
                select r.* from ready r union all select f.* from fresh f order by rank, id limit greatest(window_size, 100)) b
        ), judged as (
            select b.*, b.fresh and b.group_hash is not null and (
                exists (select from hotrow.first_of_group(
                    head.queue, head.shard, head.group_generation, head.group_left > 0, b.group_hash))
                or not done_at_once
                    and row_number() over (partition by b.group_hash order by b.n) > 1) as aside
            from both_kinds b
        ), counted as (
            select j.*, count(*) filter (where not j.aside) over w as handed,
                -- The search ends at an order that leaves its group at once, because the group's next order is not known yet.
                count(*) filter (where done_at_once and not j.fresh and j.group_hash is not null) over w as leaves
            from judged j window w as (order by j.n)
        ), chosen as (
            select c.*, done_at_once and not c.fresh and c.group_hash is not null as leaving from counted c
            where c.handed - (not c.aside)::int < most - coalesce(cardinality(chunk.ids), 0)
                and c.leaves - (done_at_once and not c.fresh and c.group_hash is not null)::int = 0
        ), aside as (
            insert into hotrow.queue_group (queue, shard, line, generation, group_hash, rank, id, place)
            select head.queue, head.shard, c.line, head.group_generation, c.group_hash, c.rank, c.id, c.place
            from chosen c where c.fresh and c.group_hash is not null and (c.aside or not done_at_once)
            returning 1
        ), handed as (
            delete from hotrow.queue_ready r where r.ctid = any (array(select c.tid from chosen c where not c.fresh))
            returning r.generation
        )
        select count(*) as walked, array_agg(c.line order by c.n) filter (where not c.aside) as lines,
            array_agg(c.place order by c.n) filter (where not c.aside) as places,
            array_agg(c.id order by c.n) filter (where not c.aside) as ids,
            array_agg(c.rank order by c.n) filter (where not c.aside) as ranks,
            array_agg(c.group_hash order by c.n) filter (where not c.aside) as groups,
            array_agg(c.attempt + 1::smallint order by c.n) filter (where not c.aside) as attempts,
            max(c.n) filter (where c.fresh) as last_fresh,
            array_agg(c.place order by c.n) filter (where c.fresh) as fresh_places,
            array_agg(c.id order by c.n) filter (where c.fresh) as fresh_ids,
            array_agg(c.group_hash) filter (where c.leaving) as leaving_groups,
            array_agg(c.rank) filter (where c.leaving) as leaving_ranks,
            array_agg(c.id) filter (where c.leaving) as leaving_ids,
            (select count(*) from aside) as grouped, (select count(*) from handed) as taken,
            (select count(*) from handed h where h.generation < head.ready_generation) as left_over
        into seen from chosen c;
        walked := walked + seen.walked;
        searches := searches + 1;
        stop := seen.walked = 0;
        head.grouped := head.grouped + seen.grouped;
        head.ready := head.ready - seen.taken;
        head.ready_gone := head.ready_gone + seen.taken - seen.left_over;
        head.ready_left := head.ready_left - seen.left_over;
        if seen.fresh_ids is not null then
            head.place := seen.fresh_places[cardinality(seen.fresh_places)];
            head.id := seen.fresh_ids[cardinality(seen.fresh_ids)];
        end if;
        if seen.leaving_ids is not null then
            head := hotrow.leave_groups(head, seen.leaving_groups, seen.leaving_ranks, seen.leaving_ids);
        end if;
        if seen.ids is not null then
            chunk.lines := chunk.lines || seen.lines;
            chunk.places := chunk.places || seen.places;
            chunk.ids := chunk.ids || seen.ids;
            chunk.ranks := chunk.ranks || seen.ranks;
            chunk.groups := chunk.groups || seen.groups;
            chunk.attempts := chunk.attempts || seen.attempts;
        end if;
    end loop;
end
$$;

-- Returns the next orders of a line after one place and up to another, in their order, from the ring's parts `low` to `high`.
-- Other parts are not opened.
create function hotrow.next_in_line(
    queue int, line int, place bigint, id bigint, last_place bigint, last_id bigint, low smallint, high smallint, most int)
returns table (
    nth int, place bigint, id bigint, order_id uuid, payload jsonb, group_key text, created_at timestamptz, at timestamptz)
language sql stable as $$
    select (row_number() over ())::int, o.* from (
        select o.place, o.id, o.order_id, o.payload, o.group_key, o.created_at, o.at from hotrow.queue_order o
        where o.queue = next_in_line.queue and o.line = next_in_line.line
            and (o.place, o.id) > (next_in_line.place, next_in_line.id) and (o.place, o.id) <= (last_place, last_id)
            and o.part >= low and o.part <= high
        order by o.queue, o.line, o.place, o.id limit most) o
$$;

-- Serves calls of one queue, in their order. Either all of them lease or all take for good. `call` is the place of each.
-- `again_in` is for calls that wait and got nothing.
create function hotrow.serve_takes(
    wanted hotrow.queue, wants int[], leases interval[], waits interval[])
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    head hotrow.queue_head;
    tail hotrow.queue_tail;
    piece record;
    was hotrow.queue_head;
    chunk hotrow.queue_chunk;
    done_at_once boolean := leases[1] is null;
    shortest interval := leases[1];
    -- The call that wants each order, and the number of orders that are wanted before each call. NULL: each call wants one.
    owners int[];
    before int[];
    total int := cardinality(wants);
    given int := 0;
    n int;
    -- The parts that the main line's next orders are in.
    low smallint;
    high smallint;
    waiting boolean := coalesce(interval '0' < any (waits), false);
    noted boolean;
    soonest interval := '10 seconds';
    shard int;
begin
    if not 1 = all (wants) then
        owners := array(
            select u.k from unnest(wants) with ordinality u (want, k), generate_series(1, u.want) order by u.k);
        before := array(
            select sum(u.want) over (order by u.k) - u.want from unnest(wants) with ordinality u (want, k) order by u.k);
        total := cardinality(owners);
    end if;
    if not shortest = all (leases) then
        shortest := (select min(u.lease) from unnest(leases) u (lease));
    end if;

    for step in 0 .. wanted.shards - 1 loop
        -- Each session begins with a shard of its own, and takes from the others if no other session is busy with them.
        shard := (pg_backend_pid() + step) % wanted.shards;
        head := hotrow.lock_head(wanted.number, shard, step = 0);
        if head.queue is null then
            soonest := '20 milliseconds';
            continue;
        end if;
        was := head;
        noted := false;
        while not head.paused and given < total loop
            if not noted then
                tail := hotrow.look_at_tail(wanted.number, shard);
            end if;
            if head.next_due <= head.at then
                head := hotrow.end_leases(head);
            end if;
            if head.side < tail.side then
                head := hotrow.look_at_side_line(head, tail.side);
            end if;
            if head.ready = 0 and not tail.grouped then
                -- The search stops at the tail that was read: an order that came since can be the first with a group. Once the
                -- head is in the present part of the ring, all orders after it are in that part too.
                low := 0;
                high := 3;
                if (head.place, head.id) >= (tail.part_place, tail.part_id) then
                    low := tail.part;
                    high := tail.part;
                end if;
                if done_at_once then
                    return query
                        with picked as materialized (
                            select o.* from hotrow.next_in_line(head.queue, head.shard * 2, head.place, head.id,
                                tail.place, tail.id, low, high, total - given) o
                        ), done as (
                            insert into hotrow.processed_order
                                (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status)
                            select head.queue, head.part, 1, p.id, p.order_id, p.at, head.at, head.at, 0 from picked p
                        )
                        select coalesce(owners[given + p.nth], given + p.nth), null::interval, null::bigint, p.id, p.order_id,
                            p.payload, p.group_key, 1, p.created_at, p.at
                        from picked p;
                else
                    return query
                        with picked as materialized (
                            select o.*, coalesce(owners[given + o.nth], given + o.nth) as k,
                                coalesce(given + o.nth - 1 - before[owners[given + o.nth]], 0) as spot
                            from hotrow.next_in_line(head.queue, head.shard * 2, head.place, head.id,
                                tail.place, tail.id, low, high, total - given) o
                        ), leased as (
                            insert into hotrow.queue_lease (queue, shard, line, attempt, lease, first, count,
                                from_place, from_id, to_place, to_id, taken_at, due, rank)
                            select head.queue, head.shard, head.shard * 2, 1, head.leases + r.k, r.first, r.count,
                                r.places[1], r.ids[1], r.places[r.count], r.ids[r.count], head.at, head.at + leases[r.k],
                                r.places[1]
                            from (
                                select p.k, min(p.spot) as first, count(*)::int as count,
                                    array_agg(p.place order by p.nth) as places, array_agg(p.id order by p.nth) as ids
                                from picked p group by p.k) r
                        )
                        select p.k, null::interval, ((head.leases + p.k) * 1024 + p.spot) * 16 + shard, p.id, p.order_id,
                            p.payload, p.group_key, 1, p.created_at, p.at
                        from picked p;
                end if;
                get diagnostics n = row_count;
                if n < total - given then
                    head.place := tail.place;
                    head.id := tail.id;
                elsif n > 0 then
                    select o.place, o.id into head.place, head.id
                    from hotrow.next_in_line(head.queue, head.shard * 2, head.place, head.id,
                        tail.place, tail.id, low, high, n) o offset n - 1;
                end if;
            else
                if owners is null then
                    owners := array(select generate_series(1, total));
                    before := array(select generate_series(0, total - 1));
                end if;
                piece := hotrow.next_orders(head, total - given, done_at_once);
                head := piece.head;
                chunk := piece.chunk;
                n := coalesce(cardinality(chunk.ids), 0);
                if n > 0 and done_at_once then
                    insert into hotrow.processed_order
                        (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status)
                    select o.queue, head.part, u.attempt, o.id, o.order_id, o.at, head.at, head.at, 0
                    from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts) u (line, place, id, attempt)
                        cross join lateral hotrow.order_at(wanted.number, u.line, u.place, u.id) o;
                elsif n > 0 then
                    insert into hotrow.queue_lease (queue, shard, line, attempt, lease, first, count,
                        from_place, from_id, to_place, to_id, taken_at, due, rank)
                    select wanted.number, shard, u.line, u.attempt, head.leases + owners[given + u.n],
                        given + u.n - 1 - before[owners[given + u.n]], 1, u.place, u.id, u.place, u.id,
                        head.at, head.at + leases[owners[given + u.n]], u.rank
                    from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts, chunk.ranks)
                        with ordinality u (line, place, id, attempt, rank, n);
                end if;
                if n > 0 then
                    return query
                        select owners[given + u.n], null::interval,
                            case when not done_at_once then
                                ((head.leases + owners[given + u.n]) * 1024 + given + u.n - 1 - before[owners[given + u.n]])
                                    * 16 + shard end,
                            o.id, o.order_id, o.payload, o.group_key, u.attempt::int, o.created_at, o.at
                        from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts)
                                with ordinality u (line, place, id, attempt, n)
                            cross join lateral hotrow.order_at(wanted.number, u.line, u.place, u.id) o
                        order by u.n;
                end if;
            end if;
            if n > 0 and done_at_once then
                head.processed := head.processed + n;
            elsif n > 0 then
                head.next_due := least(head.next_due, head.at + shortest);
                head.leases := head.leases + cardinality(wants);
                head.in_flight := head.in_flight + n;
            end if;
            given := given + n;
            -- A call that is going to wait records this at both ends of the queue. It looks again once no other call can come
            -- in between.
            exit when noted or not waiting or given >= total;
            head.waited := true;
            -- Waits only for the first shard's lock, because calls that enqueue take the locks in the shards' order.
            tail := hotrow.lock_tail(wanted.number, shard, step = 0);
            if tail.queue is null then
                soonest := '20 milliseconds';
                exit;
            end if;
            if not tail.waited then
                tail.waited := true;
                perform hotrow.write_tail(tail, 0);
            end if;
            noted := true;
        end loop;
        if head is distinct from was then
            perform hotrow.write_head(head);
        end if;
        exit when given >= total;
        soonest := least(soonest, case
            when head.paused then null
            when head.ready > 0 or head.side < tail.side or (head.place, head.id) < (tail.place, tail.id) then '0'
            when isfinite(head.next_due) then head.next_due - head.at end);
    end loop;
    if not waiting or given >= total then
        return;
    end if;
    -- Calls that got nothing and can wait.
    return query
        select u.k::int, greatest(least(soonest, u.wait), '1 millisecond'), null::bigint, null::bigint, null::uuid,
            null::jsonb, null::text, null::int, null::timestamptz, null::timestamptz
        from unnest(before, waits) with ordinality u (before, wait, k)
        where coalesce(u.before, u.k - 1) >= given and u.wait > '0';
end
$$;
