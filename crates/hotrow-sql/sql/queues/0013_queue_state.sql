-- The state of a queue's shard, and changes that do not depend on the calling function: changes due to time, and orders that
-- make room for the next order of their group.

-- Locks the end of a shard where orders are taken and reads its state. NULL if another session has the lock and `patient` is
-- false, or if the queue has been dropped. The state is read by a separate statement, which sees the writes of the last holder
-- of the lock. With the snapshot of an earlier statement (REPEATABLE READ, SERIALIZABLE) it would not: locking the state's row
-- then fails with 40001, before anything is done with an old state.
create function hotrow.lock_head(number int, shard int, patient boolean) returns hotrow.queue_head
language plpgsql as $$
declare
    head hotrow.queue_head;
begin
    if patient then
        perform from hotrow.queue_lock l where l.queue = number and l.shard = lock_head.shard and l.side = 'h' for update;
    else
        perform from hotrow.queue_lock l where l.queue = number and l.shard = lock_head.shard and l.side = 'h'
            for update skip locked;
    end if;
    if found then
        if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
            perform from hotrow.queue_head h where h.queue = number and h.shard = lock_head.shard
            order by h.queue desc, h.shard desc, h.seq desc limit 1 for no key update;
        end if;
        select h.* into head from hotrow.queue_head h where h.queue = number and h.shard = lock_head.shard
        order by h.queue desc, h.shard desc, h.seq desc limit 1;
        head.at := clock_timestamp();
        -- The clock was set back. Leases that are given now end later than head.at, and may end before the mark.
        if head.at < head.due_mark then
            head.due_mark := head.at;
            head.due_rank := 9223372036854775807;
        end if;
    end if;
    return head;
end
$$;

-- The same for the end where orders arrive. Its time never goes back, so orders without a created_at of their own keep the
-- order of their arrival.
create function hotrow.lock_tail(number int, shard int, patient boolean default true) returns hotrow.queue_tail
language plpgsql as $$
declare
    tail hotrow.queue_tail;
begin
    if patient then
        perform from hotrow.queue_lock l where l.queue = number and l.shard = lock_tail.shard and l.side = 't' for update;
    else
        perform from hotrow.queue_lock l where l.queue = number and l.shard = lock_tail.shard and l.side = 't'
            for update skip locked;
        if not found then
            return null;
        end if;
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform from hotrow.queue_tail t where t.queue = number and t.shard = lock_tail.shard
        order by t.queue desc, t.shard desc, t.seq desc limit 1 for no key update;
    end if;
    select t.* into tail from hotrow.queue_tail t where t.queue = number and t.shard = lock_tail.shard
    order by t.queue desc, t.shard desc, t.seq desc limit 1;
    tail.at := greatest(clock_timestamp(), tail.at);
    return tail;
end
$$;

-- The present state of the taking end, for calls that only read it. The server inlines it into the calling statement.
create function hotrow.look_at_head(number int, shard int) returns setof hotrow.queue_head
language sql stable as $$
    select h.* from hotrow.queue_head h where h.queue = look_at_head.number and h.shard = look_at_head.shard
    order by h.queue desc, h.shard desc, h.seq desc limit 1
$$;

-- The present state of the arriving end, for calls that take.
create function hotrow.look_at_tail(number int, shard int) returns hotrow.queue_tail
language plpgsql as $$
declare
    tail hotrow.queue_tail;
begin
    select t.* into tail from hotrow.queue_tail t where t.queue = number and t.shard = look_at_tail.shard
    order by t.queue desc, t.shard desc, t.seq desc limit 1;
    return tail;
end
$$;

-- Wakes all calls that wait for orders of a queue, on every connection: one notification, however many orders there are.
create function hotrow.wake_takers(number int) returns void
language plpgsql as $$
begin
    perform pg_notify('hotrow_wake', '{{pack}}.queue.take ' || q.queue) from hotrow.queue q where q.number = wake_takers.number;
end
$$;

-- The count of events in the minute of `at`, as far as it is known. Each end of a queue counts its events by the minute.
create function hotrow.in_this_minute(minute timestamptz, this_minute bigint, at timestamptz) returns bigint
language sql stable as $$ -- not immutable: adding to a time is not, and the server could not inline it
    select case when at >= minute and at < minute + interval '1 minute' then this_minute else 0 end
$$;

-- The count of events in the last full minute before `at`.
create function hotrow.in_last_minute(minute timestamptz, this_minute bigint, last_minute bigint, at timestamptz)
returns bigint language sql stable as $$
    select case when at < minute then 0 when at < minute + interval '1 minute' then last_minute
        when at < minute + interval '2 minutes' then this_minute else 0 end
$$;

-- The state has changed since it was read. This cannot happen while its end is locked; if it did, the changes must not be
-- committed.
create function hotrow.refuse_old_state() returns void
language plpgsql as $$
begin
    raise exception using errcode = '40001', message = 'another transaction has changed the queue',
        hint = 'Run the call in a transaction of its own at isolation level read committed.';
end
$$;

-- Abandons dead entries that searches have left in ready and group, once there are more than twice as many as live entries.
-- The live ones move to the next generation, 1000 per call to keep each call short. New entries go to the new generation, so
-- in the old one no entry comes to life before the mark up to which all have moved. Searches look at both generations as long
-- as orders are left in the old one.
create function hotrow.move_generations(inout head hotrow.queue_head)
language plpgsql as $$
declare
    moved record;
begin
    if head.ready_left = 0 and head.ready_gone > 1000 + 2 * head.ready then
        head.ready_left := head.ready;
        head.ready_generation := head.ready_generation + 1;
        head.ready_gone := 0;
        head.ready_mark_rank := -9223372036854775808;
    end if;
    if head.ready_left > 0 then
        with old as materialized (
            select r.ctid as tid, r.rank, r.id from hotrow.queue_ready r
            where r.queue = head.queue and r.shard = head.shard and r.generation = head.ready_generation - 1
                and (r.rank, r.id) > (head.ready_mark_rank, head.ready_mark_id)
            order by r.queue, r.shard, r.generation, r.rank, r.id limit 1000
        ), moved as (
            update hotrow.queue_ready r set generation = head.ready_generation
            where r.ctid = any (array(select o.tid from old o))
        )
        select o.rank, o.id, count(*) over () as orders into moved from old o order by o.rank desc, o.id desc limit 1;
        head.ready_left := case when moved.orders = 1000 then head.ready_left - 1000 else 0 end;
        head.ready_mark_rank := coalesce(moved.rank, 0);
        head.ready_mark_id := coalesce(moved.id, 0);
    end if;
    if head.group_left = 0 and head.group_gone > 1000 + 2 * head.grouped then
        head.group_left := head.grouped;
        head.group_generation := head.group_generation + 1;
        head.group_gone := 0;
        head.group_mark_hash := -9223372036854775808;
        head.group_mark_rank := -9223372036854775808;
    end if;
    if head.group_left > 0 then
        with old as materialized (
            select g.ctid as tid, g.group_hash, g.rank, g.id from hotrow.queue_group g
            where g.queue = head.queue and g.shard = head.shard and g.generation = head.group_generation - 1
                and (g.group_hash, g.rank, g.id) > (head.group_mark_hash, head.group_mark_rank, head.group_mark_id)
            order by g.queue, g.shard, g.generation, g.group_hash, g.rank, g.id limit 1000
        ), moved as (
            update hotrow.queue_group g set generation = head.group_generation
            where g.ctid = any (array(select o.tid from old o))
        )
        select o.group_hash, o.rank, o.id, count(*) over () as orders into moved
        from old o order by o.group_hash desc, o.rank desc, o.id desc limit 1;
        head.group_left := case when moved.orders = 1000 then head.group_left - 1000 else 0 end;
        head.group_mark_hash := coalesce(moved.group_hash, 0);
        head.group_mark_rank := coalesce(moved.rank, 0);
        head.group_mark_id := coalesce(moved.id, 0);
    end if;
end
$$;

-- Writes the state of a shard's head as the next version.
create function hotrow.write_head(head hotrow.queue_head) returns void
language plpgsql as $$
begin
    if head.ready_left > 0 or head.group_left > 0 or head.ready_gone > 1000 + 2 * head.ready
        or head.group_gone > 1000 + 2 * head.grouped
    then
        head := hotrow.move_generations(head);
    end if;
    -- Waiting calls look again after ten seconds at the latest. They are woken if an order is ready, or if one will be due
    -- before that and earlier than they know.
    if head.waited and not head.paused and (head.ready > 0 or head.next_due < least(head.at + interval '10 seconds', (
        select h.next_due from hotrow.look_at_head(head.queue, head.shard) h)))
    then
        head.waited := false;
        perform hotrow.wake_takers(head.queue);
    end if;
    update hotrow.queue_head h
    set seq = h.seq + 1, place = head.place, id = head.id, side = head.side, sidelined = head.sidelined,
        leases = head.leases, due_mark = head.due_mark, due_rank = head.due_rank, due_id = head.due_id,
        next_due = head.next_due,
        ready = head.ready, ready_generation = head.ready_generation, ready_gone = head.ready_gone,
        ready_left = head.ready_left, ready_mark_rank = head.ready_mark_rank, ready_mark_id = head.ready_mark_id,
        grouped = head.grouped, group_generation = head.group_generation, group_gone = head.group_gone,
        group_left = head.group_left, group_mark_hash = head.group_mark_hash, group_mark_rank = head.group_mark_rank,
        group_mark_id = head.group_mark_id, in_flight = head.in_flight, processed = head.processed, dead = head.dead, waited = head.waited, at = head.at,
        minute = date_trunc('minute', head.at, 'UTC'),
        this_minute = head.processed - h.processed + hotrow.in_this_minute(h.minute, h.this_minute, head.at),
        last_minute = hotrow.in_last_minute(h.minute, h.this_minute, h.last_minute, head.at)
    where h.queue = head.queue and h.shard = head.shard and h.seq = head.seq;
    if not found then
        perform hotrow.refuse_old_state();
    end if;
end
$$;

-- Returns one order, found by its place.
create function hotrow.order_at(queue int, line smallint, place bigint, id bigint) returns setof hotrow.queue_order
language sql stable rows 1 as $$
    select o.* from hotrow.queue_order o
    where o.queue = order_at.queue and o.line = order_at.line and (o.place, o.id) >= (order_at.place, order_at.id)
        and (o.place, o.id) <= (order_at.place, order_at.id)
    order by o.queue, o.line, o.place, o.id limit 1
$$;

-- Returns one order, found by its order_id.
create function hotrow.order_named(queue int, order_id uuid) returns setof hotrow.queue_order
language sql stable rows 1 as $$
    select o.* from hotrow.queue_order o
    where o.queue = order_named.queue and o.order_id >= order_named.order_id and o.order_id <= order_named.order_id
    order by o.queue, o.order_id limit 1
$$;

-- Makes orders ready that are outside the main line and can be taken from now on.
create function hotrow.make_ready(
    inout head hotrow.queue_head, lines smallint[], places bigint[], ids bigint[], ranks bigint[], groups bigint[],
    attempts smallint[])
language plpgsql as $$
begin
    insert into hotrow.queue_ready (queue, shard, line, attempt, generation, rank, id, place, group_hash)
    select head.queue, head.shard, u.line, u.attempt, head.ready_generation, u.rank, u.id, u.place, u.group_hash
    from unnest(lines, places, ids, ranks, groups, attempts) u (line, place, id, rank, group_hash, attempt);
    head.ready := head.ready + cardinality(ids);
end
$$;

-- Returns the first member of a strict group. `left_over`: whether members are left in the generation before.
create function hotrow.first_of_group(
    queue int, shard int, generation bigint, left_over boolean, group_hash bigint)
returns table (line smallint, rank bigint, id bigint, place bigint, group_hash bigint)
language sql stable rows 1 as $$
    select m.* from (
        (select g.line, g.rank, g.id, g.place, g.group_hash from hotrow.queue_group g
        where g.queue = first_of_group.queue and g.shard = first_of_group.shard
            and g.generation = first_of_group.generation and g.group_hash = first_of_group.group_hash
        order by g.queue, g.shard, g.generation, g.group_hash, g.rank, g.id limit 1)
        union all
        (select g.line, g.rank, g.id, g.place, g.group_hash from hotrow.queue_group g
        where left_over and g.queue = first_of_group.queue and g.shard = first_of_group.shard
            and g.generation = first_of_group.generation - 1 and g.group_hash = first_of_group.group_hash
        order by g.queue, g.shard, g.generation, g.group_hash, g.rank, g.id limit 1)) m
    order by m.rank, m.id limit 1
$$;

-- Handles orders whose turn may have come. Orders without a group, and the first order of each group that has no open order,
-- become ready. The others wait for their group.
create function hotrow.join_queue(
    inout head hotrow.queue_head, lines smallint[], places bigint[], ids bigint[], ranks bigint[], groups bigint[])
language plpgsql as $$
declare
    free record;
begin
    with judged as (
        select u.*, u.group_hash is null or row_number() over (partition by u.group_hash order by u.rank, u.id) = 1
            and not exists (select from hotrow.first_of_group(
                head.queue, head.shard, head.group_generation, head.group_left > 0, u.group_hash)) as free
        from unnest(lines, places, ids, ranks, groups) u (line, place, id, rank, group_hash)
    ), members as (
        insert into hotrow.queue_group (queue, shard, line, generation, group_hash, rank, id, place)
        select head.queue, head.shard, j.line, head.group_generation, j.group_hash, j.rank, j.id, j.place
        from judged j where j.group_hash is not null
    )
    select array_agg(j.line) as lines, array_agg(j.place) as places, array_agg(j.id) as ids, array_agg(j.rank) as ranks,
        array_agg(j.group_hash) as groups, array_agg(0::smallint) as attempts
    into free from judged j where j.free;
    head.grouped := head.grouped + coalesce(num_nonnulls(variadic groups), 0);
    if free.ids is not null then
        head := hotrow.make_ready(head, free.lines, free.places, free.ids, free.ranks, free.groups, free.attempts);
    end if;
end
$$;

-- Removes orders that are done from their groups. The next order of each group becomes ready.
create function hotrow.leave_groups(inout head hotrow.queue_head, groups bigint[], ranks bigint[], ids bigint[])
language plpgsql as $$
declare
    gone record;
    heirs record;
begin
    with members as (
        delete from hotrow.queue_group d
        where d.ctid = any (array(
            select g.tid from unnest(groups, ranks, ids) u (group_hash, rank, id)
                cross join generate_series(
                    head.group_generation - (head.group_left > 0)::int, head.group_generation) m (generation)
                cross join lateral (
                select g.ctid as tid from hotrow.queue_group g
                where g.queue = head.queue and g.shard = head.shard and g.generation = m.generation
                    and g.group_hash = u.group_hash and g.rank = u.rank and g.id = u.id limit 1) g))
        returning d.group_hash, d.generation
    )
    select count(*) as members, count(*) filter (where m.generation < head.group_generation) as left_over,
        array_agg(distinct m.group_hash) as groups
    into gone from members m;
    groups := gone.groups;
    head.grouped := head.grouped - gone.members;
    head.group_gone := head.group_gone + gone.members - gone.left_over;
    head.group_left := head.group_left - gone.left_over;
    select array_agg(n.line) as lines, array_agg(n.place) as places, array_agg(n.id) as ids, array_agg(n.rank) as ranks,
        array_agg(n.group_hash) as groups, array_agg(0::smallint) as attempts
    into heirs
    from unnest(groups) u (group_hash)
        cross join lateral hotrow.first_of_group(
            head.queue, head.shard, head.group_generation, head.group_left > 0, u.group_hash) n;
    if heirs.ids is not null then
        head := hotrow.make_ready(head, heirs.lines, heirs.places, heirs.ids, heirs.ranks, heirs.groups, heirs.attempts);
    end if;
end
$$;

-- Handles orders that have used up their attempts: dead-letters them, or records them as done with status -1.
create function hotrow.bury(
    inout head hotrow.queue_head, lines smallint[], places bigint[], ids bigint[], errors text[], attempts smallint[],
    taken_at timestamptz[])
language plpgsql as $$
declare
    keep boolean;
    left_groups record;
begin
    select q.dead_letter into keep from hotrow.queue q where q.number = head.queue;
    if keep then
        insert into hotrow.queue_dead
            (queue, shard, line, attempt, id, place, rank, group_hash, order_id, error, at)
        select o.queue, head.shard, o.line, u.attempt, o.id, o.place, coalesce(o.rank, o.place), o.group_hash,
            o.order_id, u.error, head.at
        from unnest(lines, places, ids, errors, attempts) u (line, place, id, error, attempt)
            cross join lateral hotrow.order_at(head.queue, u.line, u.place, u.id) o;
        head.dead := head.dead + cardinality(ids);
    else
        insert into hotrow.processed_order
            (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status, result)
        select o.queue, head.part, u.attempt, o.id, o.order_id, o.at, u.taken_at, head.at, -1,
            jsonb_build_object('error', u.error)
        from unnest(lines, places, ids, errors, attempts, taken_at) u (line, place, id, error, attempt, taken_at)
            cross join lateral hotrow.order_at(head.queue, u.line, u.place, u.id) o;
        head.processed := head.processed + cardinality(ids);
    end if;
    select array_agg(o.group_hash) as groups, array_agg(coalesce(o.rank, o.place)) as ranks, array_agg(o.id) as ids
    into left_groups
    from unnest(lines, places, ids) u (line, place, id)
        cross join lateral hotrow.order_at(head.queue, u.line, u.place, u.id) o
    where o.group_hash is not null;
    if left_groups.ids is not null then
        head := hotrow.leave_groups(head, left_groups.groups, left_groups.ranks, left_groups.ids);
    end if;
end
$$;

-- The orders of a run that are still leased, and each one's number within it.
create function hotrow.orders_of_run(run hotrow.queue_lease)
returns table (number int, line smallint, place bigint, id bigint, rank bigint, group_hash bigint, order_id uuid, at timestamptz)
language sql stable rows 10 as $$
    select o.* from (
        select (row_number() over ())::int - 1 as number, o.line, o.place, o.id,
            coalesce(o.rank, o.place) as rank, o.group_hash, o.order_id, o.at
        from (
            select o.* from hotrow.queue_order o
            where o.queue = run.queue and o.line = run.line
                and (o.place, o.id) >= (run.from_place, run.from_id) and (o.place, o.id) <= (run.to_place, run.to_id)
            order by o.queue, o.line, o.place, o.id) o) o
    where run.open is null or get_bit(run.open, o.number) = 1
$$;

-- Makes the changes that are due: leases that ended, and orders that waited for a time. It handles about 1000 orders per call,
-- which keeps each call short however many are due. It starts with those that ended first, and of the same moment with the
-- least ranks. A take hands out 1000 orders at most, so orders that come back at the same moment are still handed out in their
-- order.
create function hotrow.end_leases(inout head hotrow.queue_head)
language plpgsql as $$
declare
    due record;
    following record;
begin
    with first as materialized (
        select l.*, sum(l.count) over (order by l.due, l.rank, l.from_id) - l.count as before from (
            select l.ctid as tid, l.count, l.due, l.rank, l.from_id from hotrow.queue_lease l
            where l.owner = head.queue::bigint * 16 + head.shard
                and (l.due, l.rank, l.from_id) > (head.due_mark, head.due_rank, head.due_id) and l.due <= head.at
            order by l.owner, l.due, l.rank, l.from_id limit 1000) l
    ), last as (
        select f.* from first f where f.before < 1000 order by f.due desc, f.rank desc, f.from_id desc limit 1
    ), ended as (
        delete from hotrow.queue_lease e
        where e.ctid = any (array(select f.tid from first f where f.before < 1000))
        returning {{one}}e{{many}}row(e.*)::hotrow.queue_lease{{end}} as l
    ), orders as (
        select o.*, (e.l).attempt, (e.l).taken_at,
            (e.l).taken_at is not null and (e.l).attempt >= q.max_attempts as last,
            (e.l).taken_at is null and (e.l).attempt = 0 as joins
        from ended e join hotrow.queue q on q.number = head.queue cross join lateral hotrow.orders_of_run(e.l) o
    )
    select
        array_agg(o.line) filter (where o.joins) as join_lines, array_agg(o.place) filter (where o.joins) as join_places,
        array_agg(o.id) filter (where o.joins) as join_ids, array_agg(o.rank) filter (where o.joins) as join_ranks,
        array_agg(o.group_hash) filter (where o.joins) as join_groups,
        array_agg(o.line) filter (where not o.joins and not o.last) as lines,
        array_agg(o.place) filter (where not o.joins and not o.last) as places,
        array_agg(o.id) filter (where not o.joins and not o.last) as ids,
        array_agg(o.rank) filter (where not o.joins and not o.last) as ranks,
        array_agg(o.group_hash) filter (where not o.joins and not o.last) as groups,
        array_agg(o.attempt) filter (where not o.joins and not o.last) as attempts,
        array_agg(o.line) filter (where o.last) as last_lines, array_agg(o.place) filter (where o.last) as last_places,
        array_agg(o.id) filter (where o.last) as last_ids,
        array_agg('the lease ended'::text) filter (where o.last) as last_errors,
        array_agg(o.attempt) filter (where o.last) as last_attempts,
        array_agg(o.taken_at) filter (where o.last) as last_taken,
        count(*) filter (where o.taken_at is not null) as leased,
        (select l.due from last l) as mark, (select l.rank from last l) as mark_rank, (select l.from_id from last l) as mark_id
    into due from orders o;
    head.in_flight := head.in_flight - due.leased;
    if due.ids is not null then
        head := hotrow.make_ready(head, due.lines, due.places, due.ids, due.ranks, due.groups, due.attempts);
    end if;
    if due.last_ids is not null then
        head := hotrow.bury(
            head, due.last_lines, due.last_places, due.last_ids, due.last_errors, due.last_attempts, due.last_taken);
    end if;
    if due.join_ids is not null then
        head := hotrow.join_queue(head, due.join_lines, due.join_places, due.join_ids, due.join_ranks, due.join_groups);
    end if;
    if due.mark is not null then
        head.due_mark := due.mark;
        head.due_rank := due.mark_rank;
        head.due_id := due.mark_id;
    end if;
    select l.due into following from hotrow.queue_lease l
    where l.owner = head.queue::bigint * 16 + head.shard
        and (l.due, l.rank, l.from_id) > (head.due_mark, head.due_rank, head.due_id)
    order by l.owner, l.due, l.rank, l.from_id limit 1;
    head.next_due := coalesce(following.due, 'infinity');
    if head.next_due > head.at then
        head.due_mark := head.at;
        head.due_rank := 9223372036854775807;
    end if;
end
$$;

-- Handles orders of the side line that no call has looked at yet, up to `last`. Orders that can be taken join the queue, the
-- others wait for their time. It handles 2000 at most, which keeps each call short. A take finds no more than that, as long as
-- calls that enqueue help (hotrow.help_side_line). The take therefore knows all orders that came before it.
create function hotrow.look_at_side_line(inout head hotrow.queue_head, last bigint)
language plpgsql as $$
declare
    seen record;
    arrived record;
    later int;
begin
    select count(*) as orders, max(o.place) as place into seen from (
        select o.place from hotrow.queue_order o
        where o.queue = head.queue and o.line = head.shard * 2 + 1 and o.place > head.side and o.place <= last
        order by o.queue, o.line, o.place, o.id limit 2000) o;
    if seen.orders = 2000 then
        last := seen.place;
    end if;
    head.sidelined := head.sidelined + seen.orders;
    with waiting as (
        insert into hotrow.queue_lease
            (queue, shard, line, attempt, lease, first, count, from_place, from_id, to_place, to_id, due, rank)
        select o.queue, head.shard, o.line, 0, head.leases + row_number() over (order by o.place), 0, 1,
            o.place, o.id, o.place, o.id, o.not_before, coalesce(o.rank, o.place)
        from hotrow.queue_order o
        where o.queue = head.queue and o.line = head.shard * 2 + 1 and o.place > head.side and o.place <= last
            and o.not_before > head.at
        returning due
    )
    select count(*), least(head.next_due, min(w.due)) into later, head.next_due from waiting w;
    head.leases := head.leases + later;
    select array_agg(o.line) as lines, array_agg(o.place) as places, array_agg(o.id) as ids,
        array_agg(coalesce(o.rank, o.place)) as ranks, array_agg(o.group_hash) as groups
    into arrived from (
        select o.* from hotrow.queue_order o
        where o.queue = head.queue and o.line = head.shard * 2 + 1 and o.place > head.side and o.place <= last
            and (o.not_before is null or o.not_before <= head.at)
        order by o.queue, o.line, o.place, o.id) o;
    head.side := last;
    if arrived.ids is not null then
        head := hotrow.join_queue(head, arrived.lines, arrived.places, arrived.ids, arrived.ranks, arrived.groups);
    end if;
end
$$;

-- The side line grows while no call takes. Before it is longer than 1000 orders, a call that adds to it sorts in some of the
-- existing orders, unless another session is at the taking end. It never waits for that lock, because it may hold the lock of
-- another shard's arriving end.
create function hotrow.help_side_line(number int, shard int) returns void
language plpgsql as $$
declare
    tail hotrow.queue_tail := hotrow.look_at_tail(number, shard);
    head hotrow.queue_head;
begin
    select h.* into head from hotrow.look_at_head(number, shard) h;
    if tail.sidelined - head.sidelined > 1000 then
        head := hotrow.lock_head(number, shard, false);
        if head.queue is not null and head.side < tail.side then
            perform hotrow.write_head(hotrow.look_at_side_line(head, tail.side));
        end if;
    end if;
end
$$;
