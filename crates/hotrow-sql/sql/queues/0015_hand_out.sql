-- Hands out orders in their order, each to one call. Other files define how callers ask, and how orders end.

-- The orders that the head hands out next, in order: a composite of arrays with one element for each order.
create type hotrow.queue_chunk as (
    lines smallint[], places bigint[], ids bigint[], ranks bigint[], groups bigint[], attempts smallint[]);

-- Searches in the general case: looks at the least ranks of the ready orders and of the main line, and takes up to `wanted` of
-- them. It reads `window_size` entries of each kind of ready order and 100 orders of the main line at least. Returns the orders
-- that it has taken, how far it has come in the main line, and the numbers of rows that it has moved.
create function hotrow.search_orders(head hotrow.queue_head, wanted int, window_size int, done_at_once boolean) returns record
language plpgsql as $$
declare
    seen record;
begin
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
        where c.handed - (not c.aside)::int < wanted
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
    return seen;
end
$$;

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
        seen := hotrow.search_orders(head, most - coalesce(cardinality(chunk.ids), 0), window_size, done_at_once);
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

-- Returns the next orders of a line after one place and up to another, in their order. If `part` is given, they are all in this
-- part of the ring, and the other parts are not opened.
create function hotrow.next_in_line(
    queue int, line int, place bigint, id bigint, last_place bigint, last_id bigint, part smallint, most int)
returns table (
    nth int, place bigint, id bigint, order_id uuid, payload jsonb, group_key text, created_at timestamptz, at timestamptz)
language sql stable as $$
    select (row_number() over ())::int, o.* from (
        select o.place, o.id, o.order_id, o.payload, o.group_key, o.created_at, o.at from hotrow.queue_order o
        where o.queue = next_in_line.queue and o.line = next_in_line.line
            and (o.place, o.id) > (next_in_line.place, next_in_line.id) and (o.place, o.id) <= (last_place, last_id)
            and o.part >= coalesce(next_in_line.part, 0) and o.part <= coalesce(next_in_line.part, 3)
        order by o.queue, o.line, o.place, o.id limit most) o
$$;

-- Returns the slot of each order that calls want: 1024 times the number of the call, plus the order's place in the call from 0.
-- A receipt is made of the slot.
create function hotrow.slots(wants int[]) returns int[]
language plpgsql immutable as $$
begin
    return array(
        select (u.k * 1024 + g.place)::int
        from unnest(wants) with ordinality u (want, k) cross join lateral generate_series(0, u.want - 1) g (place)
        order by u.k, g.place);
end
$$;

-- Returns the next orders of the main line in the form of hotrow.serve_takes. `given` orders have been handed out before. If
-- each call wants one order, slots is NULL. It stops at the tail that was read: an order that came since can be the first with
-- a group.
create function hotrow.rows_of_main_line(
    queue int, shard int, leases bigint, place bigint, id bigint, last_place bigint, last_id bigint, part smallint, most int,
    given int, slots int[], for_good boolean)
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language sql stable as $$
    select coalesce(slots[given + o.nth] / 1024, given + o.nth), null::interval,
        case when not for_good then
            (leases * 1024 + coalesce(slots[given + o.nth], (given + o.nth) * 1024)) * 16 + shard end,
        o.id, o.order_id, o.payload, o.group_key, 1, o.created_at, o.at
    from hotrow.next_in_line(
        rows_of_main_line.queue, shard * 2, rows_of_main_line.place, rows_of_main_line.id, last_place, last_id, part, most) o
$$;

-- Returns the orders of a chunk in the same form.
create function hotrow.rows_of_chunk(
    head hotrow.queue_head, chunk hotrow.queue_chunk, given int, slots int[], for_good boolean)
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language sql stable as $$
    select coalesce(slots[given + u.n] / 1024, given + u.n)::int, null::interval,
        case when not for_good then
            (head.leases * 1024 + coalesce(slots[given + u.n], (given + u.n) * 1024)) * 16 + head.shard end,
        o.id, o.order_id, o.payload, o.group_key, u.attempt::int, o.created_at, o.at
    from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts) with ordinality u (line, place, id, attempt, n)
        cross join lateral hotrow.order_at(head.queue, u.line, u.place, u.id) o
    order by u.n
$$;

-- Returns the calls that got nothing and can wait, in the same form.
create function hotrow.rows_of_waiting_calls(wants int[], waits interval[], given int, soonest interval)
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language sql stable as $$
    select c.call::int, greatest(least(soonest, c.wait), '1 millisecond'), null::bigint, null::bigint, null::uuid, null::jsonb,
        null::text, null::int, null::timestamptz, null::timestamptz
    from (
        select u.*, sum(u.want) over (order by u.call) - u.want as before
        from unnest(wants, waits) with ordinality u (want, wait, call)) c
    where c.before >= given and c.wait > '0'
$$;

-- Returns the shortest of the leases. They are usually equal.
create function hotrow.shortest(leases interval[]) returns interval
language plpgsql immutable as $$
begin
    if leases[1] = all (leases) then
        return leases[1];
    end if;
    return (select min(u.lease) from unnest(leases) u (lease));
end
$$;

-- Records that calls have got the next `n` orders of the main line, of `most` that they wanted: leases or ends them, and moves
-- the head past them. `last_place` and `last_id` are the tail that was read.
--
-- The orders are read a second time, without their payloads. The second statement has a later snapshot than the one that
-- returned them, and finds the same orders: new orders are placed after the tail that was read, and while this session holds
-- the head's lock, no other session takes an order or empties a part of the ring. Maintenance can move orders from the part before
-- the present one to the present one. Each statement then sees an order in one of the two, and reads both, or only the present
-- part if all these orders have always been there.
create function hotrow.pass_main_line(
    inout head hotrow.queue_head, last_place bigint, last_id bigint, part smallint, n int, most int, given int, slots int[],
    leases interval[])
language plpgsql as $$
begin
    if n > 0 and leases[1] is null then
        with picked as materialized (
            select o.place, o.id, o.order_id, o.at from hotrow.next_in_line(
                head.queue, head.shard * 2, head.place, head.id, last_place, last_id, part, n) o
        ), done as (
            insert into hotrow.processed_order
                (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status)
            select head.queue, head.part, 1, p.id, p.order_id, p.at, head.at, head.at, 0 from picked p
        )
        select p.place, p.id into head.place, head.id from picked p offset n - 1;
        head.processed := head.processed + n;
    elsif n > 0 then
        with picked as materialized (
            select o.place, o.id, coalesce(slots[given + o.nth], (given + o.nth) * 1024) as slot from hotrow.next_in_line(
                head.queue, head.shard * 2, head.place, head.id, last_place, last_id, part, n) o
        ), leased as (
            insert into hotrow.queue_lease (queue, shard, line, attempt, lease, first, count,
                from_place, from_id, to_place, to_id, taken_at, due, rank)
            select head.queue, head.shard, head.shard * 2, 1, head.leases + r.k, r.first, r.count,
                r.place, r.id, r.last_place, r.last_id, head.at, head.at + leases[r.k], r.place
            from (
                -- Both places and IDs rise along the line.
                select p.slot / 1024 as k, min(p.slot % 1024) as first, count(*)::int as count,
                    min(p.place) as place, min(p.id) as id, max(p.place) as last_place, max(p.id) as last_id
                from picked p group by p.slot / 1024) r
        )
        select p.place, p.id into head.place, head.id from picked p offset n - 1;
        head.next_due := least(head.next_due, head.at + hotrow.shortest(leases));
        head.leases := head.leases + cardinality(leases);
        head.in_flight := head.in_flight + n;
    end if;
    if n < most then
        head.place := last_place;
        head.id := last_id;
    end if;
end
$$;

-- Records that calls have got the orders of a chunk: leases or ends them.
create function hotrow.record_chunk(
    inout head hotrow.queue_head, chunk hotrow.queue_chunk, given int, slots int[], leases interval[])
language plpgsql as $$
begin
    if leases[1] is null then
        insert into hotrow.processed_order
            (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status)
        select o.queue, head.part, u.attempt, o.id, o.order_id, o.at, head.at, head.at, 0
        from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts) u (line, place, id, attempt)
            cross join lateral hotrow.order_at(head.queue, u.line, u.place, u.id) o;
        head.processed := head.processed + cardinality(chunk.ids);
    else
        insert into hotrow.queue_lease (queue, shard, line, attempt, lease, first, count,
            from_place, from_id, to_place, to_id, taken_at, due, rank)
        select head.queue, head.shard, u.line, u.attempt, head.leases + s.slot / 1024, s.slot % 1024, 1,
            u.place, u.id, u.place, u.id, head.at, head.at + leases[s.slot / 1024], u.rank
        from unnest(chunk.lines, chunk.places, chunk.ids, chunk.attempts, chunk.ranks)
                with ordinality u (line, place, id, attempt, rank, n)
            cross join lateral (select coalesce(slots[given + u.n], (given + u.n) * 1024)::int as slot) s;
        head.next_due := least(head.next_due, head.at + hotrow.shortest(leases));
        head.leases := head.leases + cardinality(leases);
        head.in_flight := head.in_flight + cardinality(chunk.ids);
    end if;
end
$$;

-- Makes the changes that are due at the head: handles leases that have ended, and orders of the side line up to `side`.
create function hotrow.catch_up(inout head hotrow.queue_head, side bigint)
language plpgsql as $$
begin
    if head.next_due <= head.at then
        head := hotrow.end_leases(head);
    end if;
    if head.side < side then
        head := hotrow.look_at_side_line(head, side);
    end if;
end
$$;

-- Records at the end where orders arrive that a call is going to wait. NULL if another session has the lock: the caller has the
-- lock of the other end, and all calls that take or settle orders would wait for that session too.
create function hotrow.announce_wait(number int, shard int) returns hotrow.queue_tail
language plpgsql as $$
declare
    tail hotrow.queue_tail := hotrow.lock_tail(number, shard, false);
begin
    if not tail.waited then
        tail.waited := true;
        perform hotrow.write_tail(tail, 0);
    end if;
    return tail;
end
$$;

-- Returns the time after which a call that waits looks again, after it has looked at one more shard. `tail` is NULL if another
-- session was busy there.
create function hotrow.next_look(soonest interval, head hotrow.queue_head, tail hotrow.queue_tail) returns interval
language sql immutable as $$
    select least(case when tail.queue is null then interval '20 milliseconds' else soonest end, case
        when head.paused then null
        when head.ready > 0 or head.side < tail.side or (head.place, head.id) < (tail.place, tail.id) then interval '0'
        when isfinite(head.next_due) then head.next_due - head.at end)
$$;

-- Serves calls of one queue, in their order. Either all of them lease or all take for good. `call` is the place of each.
-- `again_in` is for calls that wait and got nothing.
--
-- The server inlines the functions that return rows into the statements here, because a function in PL/pgSQL between them and
-- the caller would copy all payloads once more.
create function hotrow.serve_takes(wanted hotrow.queue, wants int[], leases interval[], waits interval[])
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language plpgsql as $$
#variable_conflict use_column
declare
    head hotrow.queue_head;
    tail hotrow.queue_tail;
    was hotrow.queue_head;
    piece record;
    for_good boolean := leases[1] is null;
    slots int[] := case when 1 <> any (wants) then hotrow.slots(wants) end;
    total int := cardinality(coalesce(slots, wants));
    given int := 0;
    n int;
    part smallint;
    soonest interval := '10 seconds';
    shard int;
begin
    for step in 0 .. wanted.shards - 1 loop
        -- Each session begins with a shard of its own, and takes from the others if no other session is busy with them.
        shard := (pg_backend_pid() + step) % wanted.shards;
        head := hotrow.lock_head(wanted.number, shard, step = 0);
        if head.queue is null then
            soonest := '20 milliseconds';
            continue;
        end if;
        was := head;
        n := 0;
        tail := hotrow.look_at_tail(head.queue, head.shard);
        for look in 1 .. 2 loop
            exit when head.paused or tail.queue is null or given >= total;
            if head.next_due <= head.at or head.side < tail.side then
                head := hotrow.catch_up(head, tail.side);
            end if;
            if head.ready = 0 and not tail.grouped then
                -- Once the head is in the present part of the ring, all orders after it are in that part too.
                part := case when (head.place, head.id) >= (tail.part_place, tail.part_id) then tail.part end;
                return query select * from hotrow.rows_of_main_line(head.queue, head.shard, head.leases, head.place, head.id,
                    tail.place, tail.id, part, total - given, given, slots, for_good);
                get diagnostics n = row_count;
                head := hotrow.pass_main_line(head, tail.place, tail.id, part, n, total - given, given, slots, leases);
            else
                piece := hotrow.next_orders(head, total - given, for_good);
                head := piece.head;
                n := coalesce(cardinality((piece.chunk).ids), 0);
                if n > 0 then
                    return query select * from hotrow.rows_of_chunk(head, piece.chunk, given, slots, for_good);
                    head := hotrow.record_chunk(head, piece.chunk, given, slots, leases);
                end if;
            end if;
            given := given + n;
            -- A call that is going to wait records this at both ends, and looks again once no other call can come in between.
            exit when look = 2 or given >= total or (interval '0' < any (waits)) is not true;
            head.waited := true;
            tail := hotrow.announce_wait(wanted.number, shard);
        end loop;
        if n > 0 or head is distinct from was then
            perform hotrow.write_head(head);
        end if;
        exit when given >= total;
        soonest := hotrow.next_look(soonest, head, tail);
    end loop;
    if given < total and interval '0' < any (waits) then
        return query select * from hotrow.rows_of_waiting_calls(wants, waits, given, soonest);
    end if;
end
$$;
