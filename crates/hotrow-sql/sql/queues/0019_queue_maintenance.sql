-- Queries about queues, and the ring that forgets old orders. Neither changes an order's state.

-- Returns the arrival time of the order that has waited longest behind another order of its group, among a hundred groups. It
-- reads the second order of each group, because the first (except with priorities) is the one whose turn it is.
create function hotrow.oldest_aside(head hotrow.queue_head) returns timestamptz
language sql stable as $$
    with recursive seen as (
        (select g.group_hash, 1 as n from hotrow.queue_group g
        where g.queue = head.queue and g.shard = head.shard and g.generation = head.group_generation
        order by g.queue, g.shard, g.generation, g.group_hash limit 1)
        union all
        select f.group_hash, l.n + 1 from seen l cross join lateral (
            select g.group_hash from hotrow.queue_group g
            where g.queue = head.queue and g.shard = head.shard and g.generation = head.group_generation
                and g.group_hash > l.group_hash
            order by g.queue, g.shard, g.generation, g.group_hash limit 1) f
        where l.n < 100
    )
    select min(o.at) from seen l
        cross join lateral (
            select g.* from hotrow.queue_group g
            where g.queue = head.queue and g.shard = head.shard and g.generation = head.group_generation
                and g.group_hash = l.group_hash
            order by g.queue, g.shard, g.generation, g.group_hash, g.rank, g.id offset 1 limit 1) g
        cross join lateral hotrow.order_at(g.queue, g.line, g.place, g.id) o
$$;

-- Returns what a queue holds, from the numbers that its ends keep, without counting rows. Rates are of the last full minute.
create function hotrow.queue_stats(queue text)
returns table (
    depth bigint, ready bigint, in_flight bigint, processed bigint, dead bigint, enqueued bigint, oldest timestamptz,
    paused boolean, enqueued_per_second double precision, processed_per_second double precision)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
    now_at timestamptz := clock_timestamp();
begin
    return query
        with ends as (
            select h, t from hotrow.queue_lock l
                cross join lateral hotrow.look_at_head(l.queue, l.shard) h
                cross join lateral (
                    select t from hotrow.queue_tail t where t.queue = l.queue and t.shard = l.shard
                    order by t.queue desc, t.shard desc, t.seq desc limit 1) t
            where l.queue = wanted.number and l.side = 'h'
        ), oldest as (
            select least(
                (select o.at from hotrow.queue_order o
                where o.queue = wanted.number and o.line = (e.h).shard * 2 and (o.place, o.id) > ((e.h).place, (e.h).id)
                order by o.queue, o.line, o.place, o.id limit 1),
                -- Of the orders that no call has looked at yet, only the first hundred are read, because the others are
                -- younger.
                (select o.at from (
                    select o.at, o.not_before from hotrow.queue_order o
                    where o.queue = wanted.number and o.line = (e.h).shard * 2 + 1 and o.place > (e.h).side
                    order by o.queue, o.line, o.place, o.id limit 100) o
                where o.not_before is null or o.not_before <= now_at limit 1),
                (select o.at from (
                    select r.* from hotrow.queue_ready r
                    where r.queue = wanted.number and r.shard = (e.h).shard
                        and r.generation >= (e.h).ready_generation - ((e.h).ready_left > 0)::int
                    order by r.queue, r.shard, r.generation, r.rank, r.id limit 1) r
                    cross join lateral hotrow.order_at(r.queue, r.line, r.place, r.id) o),
                case when (e.h).grouped > 0 then hotrow.oldest_aside(e.h) end) as at
            from ends e
        )
        select sum((e.t).enqueued - (e.h).processed - (e.h).dead - (e.h).in_flight)::bigint, sum((e.h).ready)::bigint,
            sum((e.h).in_flight)::bigint, sum((e.h).processed)::bigint, sum((e.h).dead)::bigint,
            sum((e.t).enqueued)::bigint, (select min(o.at) from oldest o), bool_or((e.h).paused),
            sum(hotrow.in_last_minute((e.t).minute, (e.t).this_minute, (e.t).last_minute, now_at))::double precision / 60,
            sum(hotrow.in_last_minute((e.h).minute, (e.h).this_minute, (e.h).last_minute, now_at))::double precision / 60
        from ends e;
end
$$;

-- Returns a page of the queues with their statistics, after the queue of this name. All of them are read in one snapshot: a
-- queue that is dropped meanwhile is either listed completely or missing.
create function hotrow.list_queues(after text default '', max int default 100)
returns table (
    queue text, depth bigint, ready bigint, in_flight bigint, processed bigint, dead bigint, enqueued bigint,
    oldest timestamptz, paused boolean, enqueued_per_second double precision, processed_per_second double precision)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    if after is null or max is null then
        perform hotrow.null_argument('after or max');
    elsif max not between 1 and 1000 then
        perform hotrow.bad_argument(format('max is %s', max), 'List 1 to 1000 queues at a time.');
    end if;
    return query
        select q.queue, s.* from (
            select q.queue from hotrow.queue q where q.queue > after order by q.queue limit max) q
            cross join lateral hotrow.queue_stats(q.queue) s
        order by q.queue;
end
$$;

-- Returns the state of an order and its outcome.
create function hotrow.find_order(queue text, order_id uuid)
returns table (
    id bigint, state text, attempt int, group_key text, payload jsonb, created_at timestamptz,
    enqueued_at timestamptz, not_before timestamptz, taken_at timestamptz, due timestamptz, done_at timestamptz,
    status int, result jsonb, error text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
    now_at timestamptz := clock_timestamp();
begin
    return query
        select o.id,
            case when p.id is not null then 'processed' when d.id is not null then 'dead'
                when l.taken_at is not null then 'leased' when l.due is not null or later.due is not null then 'delayed'
                else 'waiting' end,
            coalesce(p.attempt, d.attempt, l.attempt, r.attempt, 0)::int, o.group_key, o.payload, o.created_at, o.at,
            o.not_before, coalesce(p.taken_at, l.taken_at), coalesce(l.due, later.due), p.done_at, p.status, p.result, d.error
        from hotrow.order_named(wanted.number, find_order.order_id) o
            left join lateral (
                select p.* from hotrow.processed_order p where p.queue = o.queue and p.id = o.id limit 1) p on true
            left join lateral (
                select d.* from hotrow.queue_dead d where d.queue = o.queue and d.id = o.id limit 1) d on true
            left join lateral hotrow.look_at_head(o.queue, o.line / 2) h on true
            left join lateral (
                select r.* from hotrow.queue_ready r where r.queue = o.queue and r.shard = o.line / 2
                    and r.generation in (h.ready_generation - 1, h.ready_generation)
                    and r.rank = coalesce(o.rank, o.place) and r.id = o.id limit 1) r
                on true
            left join lateral (
                select l.* from (
                    select l.* from hotrow.queue_lease l
                    where l.queue = o.queue and l.shard = o.line / 2 and l.line = o.line
                        and (o.place, o.id) >= (l.from_place, l.from_id) and (o.place, o.id) <= (l.to_place, l.to_id)
                    order by l.queue, l.shard, l.lease, l.first) l
                    cross join lateral hotrow.orders_of_run({{one}}l{{many}}row(l.*)::hotrow.queue_lease{{end}}) i
                where p.id is null and d.id is null and i.id = o.id limit 1) l on true
            left join lateral (
                -- No call has looked at it yet.
                select o.not_before as due where o.line % 2 = 1 and o.place > h.side and o.not_before > now_at) later on true;
end
$$;

-- Finds the place where a main line continues after all IDs up to `after`, and after its head. IDs rise along the line. In
-- order of arrival the ID itself gives the place. In other orders the place is found by bisection.
create function hotrow.main_line_after(head hotrow.queue_head, order_by text, after bigint, out place bigint, out id bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
    high bigint;
    middle bigint;
    found_place bigint;
    found_id bigint;
begin
    place := head.place;
    id := head.id;
    if order_by = 'arrival' then
        place := greatest(place, after);
        id := greatest(id, after);
    elsif after > 0 then
        -- Up to `place` no ID is above `after`, and after `high` all are.
        place := greatest(place, 0);
        high := (hotrow.look_at_tail(head.queue, head.shard)).place;
        while place < high loop
            middle := place + (high - place) / 2;
            select o.place, o.id into found_place, found_id from hotrow.queue_order o
            where o.queue = head.queue and o.line = head.shard * 2 and (o.place, o.id) > (middle, 9223372036854775807)
            order by o.queue, o.line, o.place, o.id limit 1;
            if found_id <= after then
                place := found_place;
            else
                high := middle;
            end if;
        end loop;
        id := case when place = head.place then greatest(head.id, after) else after end;
    end if;
end
$$;

-- Returns orders of a queue that wait, with IDs above `after`, the least IDs first.
create function hotrow.waiting_orders(wanted hotrow.queue, after bigint, max int, at timestamptz)
returns table (line smallint, place bigint, id bigint)
language sql stable as $$
    with heads as (
        select h as head, h.* from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
        where l.queue = wanted.number and l.side = 'h'
    )
    select w.* from (
        select o.* from heads h cross join lateral hotrow.main_line_after(h.head, wanted.order_by, after) a
            cross join lateral (
                select o.line, o.place, o.id from hotrow.queue_order o
                where o.queue = h.queue and o.line = h.shard * 2 and (o.place, o.id) > (a.place, a.id)
                order by o.queue, o.line, o.place, o.id limit max) o
        union all
        -- No call has looked at these yet.
        select o.* from heads h cross join lateral (
            select o.line, o.place, o.id from hotrow.queue_order o
            where o.queue = h.queue and o.line = h.shard * 2 + 1 and o.place > greatest(h.side, after)
                and (o.not_before is null or o.not_before <= waiting_orders.at)
            order by o.queue, o.line, o.place, o.id limit max) o
        union all
        -- Ready orders, and the members of groups that are not leased.
        (select r.* from heads h cross join lateral (
            select r.line, r.place, r.id from hotrow.queue_ready r
            where r.queue = h.queue and r.shard = h.shard
                and r.generation >= h.ready_generation - (h.ready_left > 0)::int and r.id > after
            order by r.queue, r.shard, r.generation, r.rank, r.id offset 0) r
        union
        select g.* from heads h cross join lateral (
            select g.line, g.place, g.id from hotrow.queue_group g
            where g.queue = h.queue and g.shard = h.shard
                and g.generation >= h.group_generation - (h.group_left > 0)::int and g.id > after
            order by g.queue, g.shard, g.generation, g.group_hash, g.rank, g.id offset 0) g
        except
        select l.line, l.from_place, l.from_id from hotrow.queue_lease l
        where l.queue = wanted.number and l.count = 1 and exists (select from heads h where h.grouped > 0)
        except
        select i.line, i.place, i.id from hotrow.queue_lease l cross join lateral hotrow.orders_of_run({{one}}l{{many}}row(l.*)::hotrow.queue_lease{{end}}) i
        where l.queue = wanted.number and l.count > 1 and exists (select from heads h where h.grouped > 0))) w
    order by w.id limit max
$$;

-- A row of hotrow.list_orders.
create type hotrow.listed_order as (
    id bigint, order_id uuid, attempt int, group_key text, created_at timestamptz, enqueued_at timestamptz,
    taken_at timestamptz, due timestamptz, done_at timestamptz, status int, error text);

-- Returns a page of the orders that are done. This function and the next four return the rows of hotrow.list_orders for one
-- state each. The server inlines them.
create function hotrow.list_processed(wanted hotrow.queue, after bigint, max int) returns setof hotrow.listed_order
language sql stable as $$
    select p.id, p.order_id, p.attempt::int, o.group_key, o.created_at, p.enqueued_at, p.taken_at, null::timestamptz,
        p.done_at, p.status, null::text
    from (
        select p.* from hotrow.processed_order p where p.queue = wanted.number and p.id > after
        order by p.queue, p.id limit max) p
        left join lateral hotrow.order_named(p.queue, p.order_id) o on true
    order by p.id
$$;

-- Returns a page of the dead-lettered orders.
create function hotrow.list_dead(wanted hotrow.queue, after bigint, max int) returns setof hotrow.listed_order
language sql stable as $$
    select d.id, d.order_id, d.attempt::int, o.group_key, o.created_at, o.at, null::timestamptz, null::timestamptz,
        d.at, null::int, d.error
    from (
        select d.* from hotrow.queue_dead d where d.queue = wanted.number and d.id > after
        order by d.queue, d.id limit max) d
        left join lateral hotrow.order_named(d.queue, d.order_id) o on true
    order by d.id
$$;

-- Returns a page of the orders that are leased.
create function hotrow.list_leased(wanted hotrow.queue, after bigint, max int) returns setof hotrow.listed_order
language sql stable as $$
    select i.id, i.order_id, i.attempt::int, o.group_key, o.created_at, o.at, i.taken_at, i.due,
        null::timestamptz, null::int, null::text
    from (
        -- Runs do not overlap and each has an order, so the first runs hold the least IDs.
        select i.*, l.attempt, l.taken_at, l.due
        from (
            select r.* from hotrow.queue_lease r
            where r.queue = wanted.number and r.taken_at is not null and r.to_id > after
            order by r.from_id limit max + 16) l
            cross join lateral hotrow.orders_of_run({{one}}l{{many}}row(l.*){{end}}::hotrow.queue_lease) i
        where i.id > after
        order by i.id limit max) i
        cross join lateral hotrow.order_at(wanted.number, i.line, i.place, i.id) o
    order by i.id
$$;

-- Returns a page of the orders that wait for their time at `now_at`.
create function hotrow.list_delayed(wanted hotrow.queue, after bigint, max int, now_at timestamptz)
returns setof hotrow.listed_order
language sql stable as $$
    select o.id, o.order_id, w.attempt::int, o.group_key, o.created_at, o.at, null::timestamptz,
        coalesce(w.due, o.not_before), null::timestamptz, null::int, null::text
    from (
        select d.* from (
            select l.line, l.from_place as place, l.from_id as id, l.attempt, l.due from hotrow.queue_lease l
            where l.queue = wanted.number and l.taken_at is null and l.from_id > after
            union all
            -- No call has looked at these yet.
            select o.line, o.place, o.id, 0::smallint, null from (
                select h.* from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
                where l.queue = wanted.number and l.side = 'h') h
                cross join lateral (
                    select o.line, o.place, o.id from hotrow.queue_order o
                    where o.queue = h.queue and o.line = h.shard * 2 + 1 and o.place > greatest(h.side, after)
                        and o.not_before > now_at
                    order by o.queue, o.line, o.place, o.id limit max) o) d
        order by d.id limit max) w
        cross join lateral hotrow.order_at(wanted.number, w.line, w.place, w.id) o
    order by o.id
$$;

-- Returns a page of the orders that can be taken at `now_at`, or whose group has to come first.
create function hotrow.list_waiting(wanted hotrow.queue, after bigint, max int, now_at timestamptz)
returns setof hotrow.listed_order
language sql stable as $$
    select o.id, o.order_id, coalesce(r.attempt, 0)::int, o.group_key, o.created_at, o.at, null::timestamptz,
        null::timestamptz, null::timestamptz, null::int, null::text
    from hotrow.waiting_orders(wanted, after, max, now_at) w
        cross join lateral hotrow.order_at(wanted.number, w.line, w.place, w.id) o
        left join lateral hotrow.look_at_head(o.queue, o.line / 2) h on true
        left join lateral (
            select r.attempt from hotrow.queue_ready r where r.queue = o.queue and r.shard = o.line / 2
                and r.generation in (h.ready_generation - 1, h.ready_generation)
                and r.rank = coalesce(o.rank, o.place) and r.id = o.id limit 1) r
            on true
    order by o.id
$$;

-- Returns a page of a queue's orders in one state, after the order with the ID `after`.
create function hotrow.list_orders(queue text, state text default 'waiting', after bigint default 0, max int default 100)
returns table (
    id bigint, order_id uuid, attempt int, group_key text, created_at timestamptz, enqueued_at timestamptz,
    taken_at timestamptz, due timestamptz, done_at timestamptz, status int, error text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
    now_at timestamptz := clock_timestamp();
begin
    if max is null or after is null or state is null then
        perform hotrow.null_argument('state, after or max');
    elsif max not between 1 and 1000 then
        perform hotrow.bad_argument(format('max is %s', max), 'List 1 to 1000 orders at a time.');
    elsif state = 'processed' then
        return query select * from hotrow.list_processed(wanted, after, max);
    elsif state = 'dead' then
        return query select * from hotrow.list_dead(wanted, after, max);
    elsif state = 'leased' then
        return query select * from hotrow.list_leased(wanted, after, max);
    elsif state = 'delayed' then
        return query select * from hotrow.list_delayed(wanted, after, max, now_at);
    elsif state = 'waiting' then
        return query select * from hotrow.list_waiting(wanted, after, max, now_at);
    else
        perform hotrow.bad_argument(format('state %L is unknown', state),
            'A state is waiting, delayed, leased, processed or dead.');
    end if;
end
$$;

-- Returns orders of a part of the ring that have not been taken yet, up to `most` of them.
create function hotrow.orders_ahead(part smallint, most int)
returns table (queue int, line smallint, place bigint, id bigint)
language sql stable as $$
    with heads as (
        select h.* from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
        where l.side = 'h'
    )
    select a.* from (
        select o.* from heads h cross join lateral (
            select o.queue, o.line, o.place, o.id from hotrow.queue_order o
            where o.queue = h.queue and o.line = h.shard * 2 and (o.place, o.id) > (h.place, h.id)
                and o.part = orders_ahead.part
            order by o.queue, o.line, o.place, o.id limit most) o
        union all
        select o.* from heads h cross join lateral (
            select o.queue, o.line, o.place, o.id from hotrow.queue_order o
            where o.queue = h.queue and o.line = h.shard * 2 + 1 and o.place > h.side and o.part = orders_ahead.part
            order by o.queue, o.line, o.place, o.id limit most) o) a
    limit most
$$;

-- Moves open orders from one part of the ring to another, up to `most` of them. Returns how many it found; if that is `most`,
-- there may be more. A run that is leased moves as a whole, because the rest of it is known by its place among all its orders.
--
-- It needs no lock: a reader sees an order in one of the two parts, never in both or in neither. If some of the orders are
-- done meanwhile, the only effect is that they are remembered for longer.
create function hotrow.move_orders(source smallint, target smallint, most int) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    moved bigint;
begin
    with open as (
        select a.* from hotrow.orders_ahead(source, most) a
        union all
        select r.queue, r.line, r.place, r.id from hotrow.queue_ready r
        union all
        select g.queue, g.line, g.place, g.id from hotrow.queue_group g
        union all
        select d.queue, d.line, d.place, d.id from hotrow.queue_dead d
        union all
        select o.* from hotrow.queue_lease l cross join lateral (
            select o.queue, o.line, o.place, o.id from hotrow.queue_order o
            where o.queue = l.queue and o.line = l.line and (o.place, o.id) >= (l.from_place, l.from_id)
                and (o.place, o.id) <= (l.to_place, l.to_id) and o.part = source
            order by o.queue, o.line, o.place, o.id) o
    ), found as materialized (
        select o.tid from open n cross join lateral (
            select o.ctid as tid from hotrow.queue_order o
            where o.queue = n.queue and o.line = n.line and (o.place, o.id) >= (n.place, n.id)
                and (o.place, o.id) <= (n.place, n.id) and o.part = source
            order by o.queue, o.line, o.place, o.id limit 1) o
        limit most
    ), gone as (
        delete from hotrow.queue_order d
        where d.part = source and d.ctid = any (array(select f.tid from found f))
        returning d.*
    ), moved as (
        insert into hotrow.queue_order
            (queue, line, part, place, id, order_id, rank, group_hash, created_at, at, not_before, group_key, payload)
        select g.queue, g.line, target, g.place, g.id, g.order_id, g.rank, g.group_hash, g.created_at, g.at,
            g.not_before, g.group_key, g.payload
        from gone g
    )
    select count(*) into moved from found f;
    return moved;
end
$$;

-- Moves on to the next part of the ring and empties it. Call it often: it rotates only if the present part is half of the
-- longest retention old. Open orders in the part before the present one move to the present one first. Status: rotated; young
-- (there is nothing to do yet); moving (the rest of the orders to move is left to the next call); busy (another session reads
-- the part that would be emptied, or is rotating: call again); full (more than `most` orders of the part before the present
-- one have not been taken yet: the ring waits for them, which costs only space).
--
-- Proof that an order that is done is known for at least its queue's retention R, however it ended:
-- - Orders are inserted into the present part only. Each move of the ring leaves nothing open in the part before the one that
--   it closes. An open order is therefore in the present part or in the one before it.
-- - Open orders are those ahead of the heads, ready, members of a group, leased, waiting for a time, or dead-lettered. An
--   order stays in one of these states, whatever calls do with it, until it is recorded as processed. An order that is done is
--   never open again: dead letters are not done.
-- - Let an order be done at t, while part n is the present one. Its row is in n or n - 1, its record in n. Part n - 1 is
--   emptied by the third move after t. The first was not before t; each of the next two came half of R later at least, since R
--   is no more than the longest retention that exists. So the third came at t + R or later.
-- - Times are read under the locks of all queues. An order done before is recorded, and an order done later has a later time.
--
-- The orders ahead of a head move all at once or not at all, and in limited number, because takes have to pass the places
-- where they were.
create function hotrow.rotate_queues(most int default 10000, out status text, out part smallint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
    ring hotrow.queue_ring;
    keep interval;
    at timestamptz := clock_timestamp();
    previous smallint;
    following smallint;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 1000000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Move 1 to 1,000,000 orders at a time.');
    end if;
    -- Two concurrent sessions would empty two parts, so only the session that gets this lock goes on. A call with nothing to
    -- do does not take the lock, because a transaction left open after such a call would block all other sessions.
    select coalesce(max(q.retention), '0') into keep from hotrow.queue q;
    for attempt in 1 .. 2 loop
        if attempt = 1 then
            select r.* into ring from hotrow.queue_ring r where r.one;
        else
            select r.* into ring from hotrow.queue_ring r where r.one for update skip locked;
            if not found then
                status := 'busy';
                return;
            end if;
        end if;
        part := ring.part;
        if ring.opened_at > at - keep / 2 then
            status := 'young';
            return;
        end if;
    end loop;
    previous := (ring.part + 3) % 4;
    following := (ring.part + 1) % 4;
    if (select count(*) from hotrow.orders_ahead(previous, most + 1)) > most then
        status := 'full';
        return;
    end if;
    if hotrow.move_orders(previous, ring.part, most) >= most then
        status := 'moving';
        return;
    end if;
    begin
        -- Calls that enqueue or complete read the present part under one of these locks.
        perform from hotrow.queue_lock l where l.side = 'h' order by l.queue, l.shard for update;
        perform from hotrow.queue_lock l where l.side = 't' order by l.queue, l.shard for update;
        at := clock_timestamp();
{{one}}
        execute format('truncate hotrow.queue_order_%s, hotrow.processed_order_%s', following, following);
{{many}}
        perform set_config('citus.enable_manual_changes_to_shards', 'on', true);
        execute format('truncate hotrow.%s, hotrow.%s',
            (array[{{parts queue_order}}])[following + 1], (array[{{parts processed_order}}])[following + 1]);
{{end}}
        update hotrow.queue_ring r set part = following, opened_at = at where r.one;
        update hotrow.queue_head h set seq = h.seq + 1, part = following
        where h.seq = (select max(n.seq) from hotrow.queue_head n where n.queue = h.queue and n.shard = h.shard);
        update hotrow.queue_tail t set seq = t.seq + 1, part = following, part_place = t.place, part_id = t.id
        where t.seq = (select max(n.seq) from hotrow.queue_tail n where n.queue = t.queue and n.shard = t.shard);
        status := 'rotated';
        part := following;
    exception
        when lock_not_available then
            status := 'busy';
    end;
end
$$;
