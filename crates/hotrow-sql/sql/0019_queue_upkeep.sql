-- Looks at queues, the ring that forgets old orders, and which calls are merged. Never what happens to an order.

-- What a queue holds, from the numbers that its ends keep: nothing is counted. Rates are of the last full minute.
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
                cross join lateral (
                    select h from hotrow.queue_head h where h.queue = l.queue and h.shard = l.shard
                    order by h.queue desc, h.shard desc, h.seq desc limit 1) h
                cross join lateral (
                    select t from hotrow.queue_tail t where t.queue = l.queue and t.shard = l.shard
                    order by t.queue desc, t.shard desc, t.seq desc limit 1) t
            where l.queue = wanted.number and l.side = 'h'
        ), oldest as (
            select least(
                (select o.at from hotrow.queue_order o
                where o.queue = wanted.number and o.line = (e.h).shard * 2 and (o.place, o.id) > ((e.h).place, (e.h).id)
                order by o.queue, o.line, o.place, o.id limit 1),
                (select o.at from (
                    select r.* from hotrow.queue_ready r
                    where r.queue = wanted.number and r.shard = (e.h).shard and r.generation = (e.h).ready_generation
                    order by r.queue, r.shard, r.generation, r.rank, r.id limit 1) r
                    cross join lateral hotrow.order_at(r.queue, r.line, r.place, r.id) o)) as at
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

-- A page of the queues with what they hold, behind the one of this name. One snapshot for all: a queue that is dropped meanwhile
-- is there or not.
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

-- What is known of an order: where it is, and what became of it.
create function hotrow.find_order(queue text, order_id uuid)
returns table (
    id bigint, state text, attempt int, group_key text, payload jsonb, created_at timestamptz,
    enqueued_at timestamptz, not_before timestamptz, taken_at timestamptz, due timestamptz, done_at timestamptz,
    status int, result jsonb, error text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
begin
    return query
        select o.id,
            case when p.id is not null then 'processed' when d.id is not null then 'dead'
                when l.taken_at is not null then 'leased' when l.due is not null then 'delayed' else 'waiting' end,
            coalesce(p.attempt, d.attempt, l.attempt, r.attempt, 0)::int, o.group_key, o.payload, o.created_at, o.at,
            o.not_before, coalesce(p.taken_at, l.taken_at), l.due, p.done_at, p.status, p.result, d.error
        from hotrow.order_named(wanted.number, find_order.order_id) o
            left join lateral (
                select p.* from hotrow.processed_order p where p.queue = o.queue and p.id = o.id limit 1) p on true
            left join lateral (
                select d.* from hotrow.queue_dead d where d.queue = o.queue and d.id = o.id limit 1) d on true
            left join lateral (
                select h.* from hotrow.queue_head h where h.queue = o.queue and h.shard = o.line / 2
                order by h.queue desc, h.shard desc, h.seq desc limit 1) h on true
            left join lateral (
                select r.* from hotrow.queue_ready r where r.queue = o.queue and r.shard = o.line / 2
                    and r.generation = h.ready_generation and r.rank = coalesce(o.rank, o.place) and r.id = o.id limit 1) r
                on true
            left join lateral (
                select l.* from (
                    select l.* from hotrow.queue_lease l
                    where l.queue = o.queue and l.shard = o.line / 2 and l.line = o.line
                        and (o.place, o.id) >= (l.from_place, l.from_id) and (o.place, o.id) <= (l.to_place, l.to_id)
                    order by l.queue, l.shard, l.lease, l.first) l
                    cross join lateral hotrow.orders_of_run(l) i
                where p.id is null and d.id is null and i.id = o.id limit 1) l on true;
end
$$;

-- A page of a queue's orders in a state, behind the order with id `after`.
create function hotrow.list_orders(queue text, state text default 'waiting', after bigint default 0, max int default 100)
returns table (
    id bigint, order_id uuid, attempt int, group_key text, created_at timestamptz, enqueued_at timestamptz,
    taken_at timestamptz, due timestamptz, done_at timestamptz, status int, error text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
begin
    if max is null or after is null or state is null then
        perform hotrow.null_argument('state, after or max');
    elsif max not between 1 and 1000 then
        perform hotrow.bad_argument(format('max is %s', max), 'List 1 to 1000 orders at a time.');
    elsif state = 'processed' then
        return query
            select p.id, p.order_id, p.attempt::int, o.group_key, o.created_at, p.enqueued_at, p.taken_at, null::timestamptz,
                p.done_at, p.status, null::text
            from (
                select p.* from hotrow.processed_order p where p.queue = wanted.number and p.id > after
                order by p.queue, p.id limit max) p
                left join lateral hotrow.order_named(p.queue, p.order_id) o on true
            order by p.id;
    elsif state = 'dead' then
        return query
            select d.id, d.order_id, d.attempt::int, o.group_key, o.created_at, o.at, null::timestamptz, null::timestamptz,
                d.at, null::int, d.error
            from (
                select d.* from hotrow.queue_dead d where d.queue = wanted.number and d.id > after
                order by d.queue, d.id limit max) d
                left join lateral hotrow.order_named(d.queue, d.order_id) o on true
            order by d.id;
    elsif state in ('leased', 'delayed') then
        return query
            select i.id, i.order_id, i.attempt::int, o.group_key, o.created_at, o.at, i.taken_at, i.due,
                null::timestamptz, null::int, null::text
            from (
                select i.*, l.attempt, l.taken_at, l.due
                from hotrow.queue_lease l cross join lateral hotrow.orders_of_run(l) i
                where l.queue = wanted.number and (l.taken_at is not null) = (state = 'leased') and i.id > after
                order by i.id limit max) i
                cross join lateral hotrow.order_at(wanted.number, i.line, i.place, i.id) o
            order by i.id;
    elsif state = 'waiting' then
        return query
            with heads as (
                select h.* from hotrow.queue_lock l cross join lateral (
                    select h.* from hotrow.queue_head h where h.queue = l.queue and h.shard = l.shard
                    order by h.queue desc, h.shard desc, h.seq desc limit 1) h
                where l.queue = wanted.number and l.side = 'h'
            ), waiting as (
                select w.*, 0::smallint as attempt from heads h cross join lateral (
                    select o.* from hotrow.queue_order o
                    where o.queue = h.queue and o.line = h.shard * 2 and (o.place, o.id) > (h.place, h.id) and o.id > after
                    order by o.queue, o.line, o.place, o.id limit max) w
                union all
                select o.*, r.attempt from heads h
                    cross join lateral (
                        select r.* from hotrow.queue_ready r
                        where r.queue = h.queue and r.shard = h.shard and r.generation = h.ready_generation and r.id > after
                        order by r.id limit max) r
                    cross join lateral hotrow.order_at(r.queue, r.line, r.place, r.id) o
            )
            select w.id, w.order_id, w.attempt::int, w.group_key, w.created_at, w.at, null::timestamptz, null::timestamptz,
                null::timestamptz, null::int, null::text
            from waiting w order by w.id limit max;
    else
        perform hotrow.bad_argument(format('state %L is unknown', state),
            'A state is waiting, delayed, leased, processed or dead.');
    end if;
end
$$;

-- Moves on to the next part of the ring and empties it. Call it often: it does so only when the present part is half of the
-- longest retention old and the next one was closed that long ago. What is still open in there moves to the present part
-- first. Status: rotated; young (nothing to do yet); busy (somebody reads the part: call again); full (more than `most`
-- of its orders are still open: the ring waits for them, and nothing but space is lost).
create function hotrow.rotate_queues(most int default 10000, out status text, out part smallint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
    ring hotrow.queue_ring;
    keep interval;
    at timestamptz := clock_timestamp();
    following smallint;
    open bigint;
begin
    select r.* into ring from hotrow.queue_ring r where r.one for update;
    select coalesce(max(q.retention), '0') into keep from hotrow.queue q;
    part := ring.part;
    following := (ring.part + 1) % 4;
    status := 'young';
    if ring.opened_at > at - keep / 2 or ring.closed_at[following + 1] > at - keep then
        return;
    end if;
    -- Whoever enqueues or completes reads the present part under one of these locks.
    perform from hotrow.queue_lock l where l.side = 'h' order by l.queue, l.shard for update;
    perform from hotrow.queue_lock l where l.side = 't' order by l.queue, l.shard for update;
    with heads as (
        select h.* from hotrow.queue_lock l cross join lateral (
            select h.* from hotrow.queue_head h where h.queue = l.queue and h.shard = l.shard
            order by h.queue desc, h.shard desc, h.seq desc limit 1) h
        where l.side = 'h'
    ), unfinished as (
        select o.queue, o.line, o.place, o.id from heads h cross join lateral (
            select o.* from hotrow.queue_order o
            where o.queue = h.queue and o.line = h.shard * 2 and (o.place, o.id) > (h.place, h.id) and o.part = following
            order by o.queue, o.line, o.place, o.id limit most + 1) o
        union
        select o.queue, o.line, o.place, o.id from heads h cross join lateral (
            select o.* from hotrow.queue_order o
            where o.queue = h.queue and o.line = h.shard * 2 + 1 and o.place > h.side and o.part = following
            order by o.queue, o.line, o.place, o.id limit most + 1) o
        union
        select r.queue, r.line, r.place, r.id from hotrow.queue_ready r
        union
        select g.queue, g.line, g.place, g.id from hotrow.queue_group g
        union
        select d.queue, d.line, d.place, d.id from hotrow.queue_dead d
        union
        select l.queue, i.line, i.place, i.id from hotrow.queue_lease l cross join lateral hotrow.orders_of_run(l) i
    ), moved as (
        insert into hotrow.queue_order
            (queue, line, part, place, id, order_id, rank, group_hash, created_at, at, not_before, group_key, payload)
        select o.queue, o.line, ring.part, o.place, o.id, o.order_id, o.rank, o.group_hash, o.created_at, o.at,
            o.not_before, o.group_key, o.payload
        from unfinished u cross join lateral hotrow.order_at(u.queue, u.line, u.place, u.id) o
        where o.part = following limit most + 1
        returning 1
    )
    select count(*) into open from moved;
    if open > most then
        raise exception using errcode = 'HR003';
    end if;
    execute format('truncate hotrow.queue_order_%s, hotrow.processed_order_%s', following, following);
    update hotrow.queue_ring r
    set part = following, opened_at = at,
        closed_at = array(select case c.n when ring.part + 1 then at when following + 1 then null else c.at end
            from unnest(ring.closed_at) with ordinality c (at, n) order by c.n)
    where r.one;
    update hotrow.queue_head h set seq = h.seq + 1, part = following
    where h.seq = (select max(n.seq) from hotrow.queue_head n where n.queue = h.queue and n.shard = h.shard);
    update hotrow.queue_tail t set seq = t.seq + 1, part = following, part_place = t.place, part_id = t.id
    where t.seq = (select max(n.seq) from hotrow.queue_tail n where n.queue = t.queue and n.shard = t.shard);
    status := 'rotated';
    part := following;
exception
    when lock_not_available then
        status := 'busy';
    when sqlstate 'HR003' then
        status := 'full';
end
$$;

select hotrow.add_merge_rule(
    'hotrow.enqueue(text,uuid,jsonb,text,timestamptz,timestamptz,int)',
    'hotrow.enqueue_batch(text[],uuid[],jsonb[],text[],timestamptz[],timestamptz[],int[])', 'queue', 'hotrow.queue.enqueue');
-- Few in one call: each has up to 1000 orders.
select hotrow.add_merge_rule('hotrow.enqueue_all(text,jsonb)', 'hotrow.enqueue_all_batch(text[],jsonb[])',
    'queue', 'hotrow.queue.enqueue', most_calls => 16);
select hotrow.add_merge_rule('hotrow.complete(text,bigint,int,jsonb)',
    'hotrow.complete_batch(text[],bigint[],int[],jsonb[])', 'queue', 'hotrow.queue.take');
select hotrow.add_merge_rule('hotrow.fail(text,bigint,text,interval)',
    'hotrow.fail_batch(text[],bigint[],text[],interval[])', 'queue', 'hotrow.queue.take');
select hotrow.add_merge_rule('hotrow.release(text,bigint)', 'hotrow.release_batch(text[],bigint[])',
    'queue', 'hotrow.queue.take');
select hotrow.add_merge_rule('hotrow.extend_lease(text,bigint,interval)',
    'hotrow.extend_lease_batch(text[],bigint[],interval[])', 'queue', 'hotrow.queue.take');
select hotrow.add_merge_rule('hotrow.take(text,int,interval,interval)',
    'hotrow.take_batch(text[],int[],interval[],interval[])', 'queue', 'hotrow.queue.take', wait_argument => 'wait');
select hotrow.add_merge_rule('hotrow.complete_all(text,hotrow.receipts,int,jsonb)',
    'hotrow.complete_all_batch(text[],hotrow.receipts[],int[],jsonb[])', 'queue', 'hotrow.queue.take');
