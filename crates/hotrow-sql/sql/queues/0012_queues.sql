-- Ordered queues: their tables, and how a queue is created, paused and dropped. The next files handle its orders.
--
-- A take stays fast without vacuuming. Orders are only inserted, and a few of them are moved when the ring moves on. A mark in
-- the queue's head says how far they have been handed out, and a search begins after it. Rows that change often are found
-- newest first (head, tail), by their own number (leases), or in a generation that is abandoned when it has collected dead
-- entries (ready, group). So a snapshot that is held open for hours costs space and no time.
--
-- A planner that takes a table for empty finds all its indexes equally good, and may read a whole queue by the wrong one.
-- Therefore the two indexes of leases have no column in common, orders are asked for by a range in an order that only the right
-- index has, and rows that are joined one by one use LATERAL with a LIMIT, which leaves the planner no choice.

create table hotrow.queue (
    queue text collate "C" primary key,
    -- The number under which the other tables know the queue. It is never used again.
    number int not null unique,
    shards smallint not null check (shards between 1 and 16),
    strict_groups boolean not null,
    order_by text not null check (order_by in ('arrival', 'created_at')),
    max_attempts smallint not null check (max_attempts between 1 and 1000),
    retry interval not null check (retry >= '0'),
    dead_letter boolean not null,
    retention interval not null check (retention >= '0')
);

-- The ring of parts that orders are kept in, and the numbers given to queues.
create table hotrow.queue_ring (
    one boolean primary key default true check (one),
    last_queue int not null default 0,
    part smallint not null default 0 check (part between 0 and 3),
    opened_at timestamptz not null default clock_timestamp(),
    -- No dropped queue had a lease with a higher number. Leases of new queues are numbered from here. A receipt of a dropped
    -- queue therefore never names an order of another queue with the same name.
    last_lease bigint not null default 0
);
insert into hotrow.queue_ring default values;

-- The rows that are locked to work at one end of a shard. They never change, so each has one version to lock.
create table hotrow.queue_lock (
    queue int not null,
    shard smallint not null,
    -- h: calls that take, complete or fail orders; t: calls that enqueue. A call that needs both locks h first.
    side "char" not null check (side in ('h', 't')),
    primary key (queue, shard, side)
);

-- The end at which orders arrive. A change inserts the row again with a new seq, and readers look for the highest seq. They
-- therefore find the present version first, however many dead ones there are.
create table hotrow.queue_tail (
    queue int not null,
    shard smallint not null,
    seq bigint not null,
    part smallint not null,
    last_id bigint not null default 0,
    -- The last order of the main line. A new order that sorts after it can join that line.
    place bigint not null default -9223372036854775808,
    id bigint not null default 0,
    -- The last order of the main line when the ring moved on to this part: all orders after it are in this part.
    part_place bigint not null default -9223372036854775808,
    part_id bigint not null default 0,
    -- The last order of the side line, and the number of its orders so far.
    side bigint not null default 0,
    sidelined bigint not null default 0,
    grouped boolean not null default false,
    enqueued bigint not null default 0,
    -- A call waits for an order to arrive.
    waited boolean not null default false,
    at timestamptz not null default '-infinity',
    minute timestamptz not null default '-infinity',
    this_minute bigint not null default 0,
    last_minute bigint not null default 0,
    primary key (queue, shard, seq)
);

-- The end at which orders are taken.
create table hotrow.queue_head (
    queue int not null,
    shard smallint not null,
    seq bigint not null,
    part smallint not null,
    paused boolean not null default false,
    -- All orders of the main line up to here have been handed out or put aside.
    place bigint not null default -9223372036854775808,
    id bigint not null default 0,
    -- The last order of the side line that has been sorted in, and the number of orders up to it.
    side bigint not null default 0,
    sidelined bigint not null default 0,
    -- The last lease's number.
    leases bigint not null default 0,
    -- The leases up to (due_mark, due_rank, due_id), in the order of queue_lease_due, have been removed. No other lease ends
    -- before next_due.
    due_mark timestamptz not null default '-infinity',
    due_rank bigint not null default 0,
    due_id bigint not null default 0,
    next_due timestamptz not null default 'infinity',
    -- The number of ready orders; the number of those that are still in the generation before ready_generation, after the
    -- mark; the number of orders that have been taken out of ready_generation. The same for group members.
    ready int not null default 0,
    ready_generation bigint not null default 0,
    ready_gone int not null default 0,
    ready_left int not null default 0,
    ready_mark_rank bigint not null default 0,
    ready_mark_id bigint not null default 0,
    grouped int not null default 0,
    group_generation bigint not null default 0,
    group_gone int not null default 0,
    group_left int not null default 0,
    group_mark_hash bigint not null default 0,
    group_mark_rank bigint not null default 0,
    group_mark_id bigint not null default 0,
    in_flight bigint not null default 0,
    processed bigint not null default 0,
    dead bigint not null default 0,
    -- A call waits for an order that is given back.
    waited boolean not null default false,
    at timestamptz not null default '-infinity',
    minute timestamptz not null default '-infinity',
    this_minute bigint not null default 0,
    last_minute bigint not null default 0,
    primary key (queue, shard, seq)
);

-- Every order, for as long as its part of the ring is kept. During that time a second order with its order_id is a duplicate.
-- Line 2n of shard n holds the orders that arrived in the queue's order, sorted by it. Line 2n + 1 holds the others (with a
-- priority, a time to wait for, or a created_at before others), in order of arrival.
create table hotrow.queue_order (
    queue int not null,
    line smallint not null,
    part smallint not null,
    place bigint not null,
    id bigint not null,
    order_id uuid not null,
    -- The order's place in the queue's order; NULL if that is its place in the line.
    rank bigint,
    -- The hash of its group_key, if groups are strict. Two groups with the same hash wait for each other, which is slow but
    -- correct.
    group_hash bigint,
    created_at timestamptz not null,
    at timestamptz not null,
    not_before timestamptz,
    group_key text,
    payload jsonb,
    primary key (queue, line, place, id, part),
    unique (queue, order_id, part)
) partition by list (part);
create table hotrow.queue_order_0 partition of hotrow.queue_order for values in (0);
create table hotrow.queue_order_1 partition of hotrow.queue_order for values in (1);
create table hotrow.queue_order_2 partition of hotrow.queue_order for values in (2);
create table hotrow.queue_order_3 partition of hotrow.queue_order for values in (3);

-- The outcome of each order that is done.
create table hotrow.processed_order (
    queue int not null,
    part smallint not null,
    attempt smallint not null,
    id bigint not null,
    order_id uuid not null,
    enqueued_at timestamptz not null,
    taken_at timestamptz not null,
    done_at timestamptz not null,
    status int not null,
    result jsonb,
    primary key (queue, id, part)
) partition by list (part);
create table hotrow.processed_order_0 partition of hotrow.processed_order for values in (0);
create table hotrow.processed_order_1 partition of hotrow.processed_order for values in (1);
create table hotrow.processed_order_2 partition of hotrow.processed_order for values in (2);
create table hotrow.processed_order_3 partition of hotrow.processed_order for values in (3);

-- Orders that a worker holds, and orders that wait for a time. A row is a run of neighbours that one call of take got.
create table hotrow.queue_lease (
    queue int not null,
    shard smallint not null,
    line smallint not null,
    attempt smallint not null,
    lease bigint not null,
    -- The place of the run's first order among those of the lease.
    first int not null,
    count int not null,
    from_place bigint not null,
    from_id bigint not null,
    to_place bigint not null,
    to_id bigint not null,
    -- Which orders of the run are still leased; NULL: all of them.
    open bit varying,
    -- NULL: no worker holds it; it waits for its time.
    taken_at timestamptz,
    due timestamptz not null,
    -- The rank of the run's first order. Of leases that end at the same moment, the one with the least rank comes first.
    rank bigint not null,
    -- Copies of queue and shard, for the index of due leases.
    owner bigint not null generated always as (queue::bigint * 16 + shard) stored,
    primary key (queue, shard, lease, first)
);
create index queue_lease_due on hotrow.queue_lease (owner, due, rank, from_id);

-- Orders that can be taken and are outside the main line: given back, due, or never part of it.
create table hotrow.queue_ready (
    queue int not null,
    shard smallint not null,
    line smallint not null,
    attempt smallint not null,
    generation bigint not null,
    rank bigint not null,
    id bigint not null,
    place bigint not null,
    group_hash bigint,
    primary key (queue, shard, generation, rank, id)
);

-- The open orders of each strict group with an order that is leased, ready, or waiting for another attempt. That order comes
-- first. The others are handed out after it, one at a time.
create table hotrow.queue_group (
    queue int not null,
    shard smallint not null,
    line smallint not null,
    generation bigint not null,
    group_hash bigint not null,
    rank bigint not null,
    id bigint not null,
    place bigint not null,
    primary key (queue, shard, generation, group_hash, rank, id)
);

-- Orders that failed for the last time.
create table hotrow.queue_dead (
    queue int not null,
    shard smallint not null,
    line smallint not null,
    attempt smallint not null,
    id bigint not null,
    place bigint not null,
    rank bigint not null,
    group_hash bigint,
    order_id uuid not null,
    error text,
    at timestamptz not null,
    primary key (queue, id)
);

-- The queue with this name. Naming a queue that does not exist is an error.
create function hotrow.known_queue(queue text) returns hotrow.queue
language plpgsql stable as $$
#variable_conflict use_column
declare
    known hotrow.queue;
begin
    select q.* into known from hotrow.queue q where q.queue = known_queue.queue;
    if not found then
        perform hotrow.check_name('queue', queue);
        raise exception using errcode = 'P0002', message = format('there is no queue %L', queue),
            hint = 'Create it with {{pack}}.create_queue.';
    end if;
    return known;
end
$$;

create function hotrow.create_queue(
    queue text, shards int default 1, strict_groups boolean default true, max_attempts int default 20,
    retry interval default '1 second', dead_letter boolean default true, retention interval default '7 days',
    order_by text default 'arrival', out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    ring hotrow.queue_ring;
begin
    perform hotrow.check_name('queue', queue);
    if num_nulls(shards, strict_groups, max_attempts, retry, dead_letter, retention, order_by) > 0 then
        perform hotrow.null_argument('an argument of create_queue');
    elsif shards not between 1 and 16 then
        perform hotrow.bad_argument(format('shards is %s', shards), 'Let a queue have 1 to 16 shards.');
    elsif max_attempts not between 1 and 1000 then
        perform hotrow.bad_argument(format('max_attempts is %s', max_attempts), 'Allow 1 to 1000 attempts.');
    elsif retry < '0' or retry > '1 day' then
        perform hotrow.bad_argument(format('retry is %s', retry), 'Pause for 0 to 24 hours after the first failure.');
    elsif retention < '0' or retention > '3660 days' then
        perform hotrow.bad_argument(format('retention is %s', retention), 'Remember orders for 0 to 3660 days.');
    elsif order_by not in ('arrival', 'created_at') then
        perform hotrow.bad_argument(format('order_by %L is unknown', order_by), 'Order by arrival or created_at.');
    end if;
    -- Calls are serialised, because no other call may see half a queue.
    select r.* into ring from hotrow.queue_ring r where r.one for update;
    select case when (q.shards, q.strict_groups, q.max_attempts, q.retry, q.dead_letter, q.retention, q.order_by)
            = (create_queue.shards, create_queue.strict_groups, create_queue.max_attempts, create_queue.retry,
                create_queue.dead_letter, create_queue.retention, create_queue.order_by)
        then 'exists' else 'differs' end
    into create_queue.status from hotrow.queue q where q.queue = create_queue.queue;
    if status is null then
        update hotrow.queue_ring r set last_queue = r.last_queue + 1 where r.one;
        insert into hotrow.queue
            (queue, number, shards, strict_groups, order_by, max_attempts, retry, dead_letter, retention)
        values (create_queue.queue, ring.last_queue + 1, create_queue.shards, create_queue.strict_groups,
            create_queue.order_by, create_queue.max_attempts, create_queue.retry, create_queue.dead_letter,
            create_queue.retention);
        insert into hotrow.queue_tail (queue, shard, seq, part)
        select ring.last_queue + 1, s.shard, 0, ring.part from generate_series(0, create_queue.shards - 1) s (shard);
        insert into hotrow.queue_head (queue, shard, seq, part, leases)
        select ring.last_queue + 1, s.shard, 0, ring.part, ring.last_lease from generate_series(0, create_queue.shards - 1) s (shard);
        insert into hotrow.queue_lock (queue, shard, side)
        select ring.last_queue + 1, s.shard, e.side
        from generate_series(0, create_queue.shards - 1) s (shard) cross join unnest(array['h', 't']::"char"[]) e (side);
        status := 'created';
    end if;
end
$$;

-- Takes all locks of a queue, for a change of the queue as a whole.
create function hotrow.lock_queue(number int) returns void
language plpgsql as $$
begin
    perform from hotrow.queue_lock l where l.queue = number and l.side = 'h' order by l.shard for update;
    perform from hotrow.queue_lock l where l.queue = number and l.side = 't' order by l.shard for update;
end
$$;

-- Drops a queue. Its orders, taken or not, are deleted with the parts of the ring that contain them. No call finds them,
-- because numbers are not used again.
create function hotrow.drop_queue(queue text, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    gone int;
begin
    perform hotrow.check_name('queue', queue);
    status := 'unknown_queue';
    -- Every transaction locks the ring before a queue's locks.
    perform from hotrow.queue_ring r where r.one for update;
    select q.number into gone from hotrow.queue q where q.queue = drop_queue.queue;
    if gone is not null then
        perform hotrow.lock_queue(gone);
        update hotrow.queue_ring r set last_lease = greatest(r.last_lease, (
            select max(h.leases) from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
            where l.queue = gone and l.side = 'h'))
        where r.one;
        perform hotrow.wake_takers(gone); -- waiting calls get the error that the queue does not exist
        delete from hotrow.queue q where q.number = gone;
        delete from hotrow.queue_head h where h.queue = gone;
        delete from hotrow.queue_tail t where t.queue = gone;
        delete from hotrow.queue_lease l where l.queue = gone;
        delete from hotrow.queue_ready r where r.queue = gone;
        delete from hotrow.queue_group g where g.queue = gone;
        delete from hotrow.queue_dead d where d.queue = gone;
        delete from hotrow.queue_lock l where l.queue = gone;
        status := 'dropped';
    end if;
end
$$;

-- Sets whether take hands out orders. Leases that were handed out stay valid.
create function hotrow.set_paused(queue text, paused boolean) returns boolean
language plpgsql as $$
#variable_conflict use_column
declare
    number int := (hotrow.known_queue(queue)).number;
begin
    perform hotrow.lock_queue(number);
    update hotrow.queue_head h set seq = h.seq + 1, paused = set_paused.paused, waited = false
    where h.queue = number and h.paused <> set_paused.paused
        and h.seq = (select max(n.seq) from hotrow.queue_head n where n.queue = number and n.shard = h.shard);
    return found;
end
$$;

create function hotrow.pause(queue text, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform hotrow.set_paused(queue, true);
    status := 'paused';
end
$$;

create function hotrow.resume(queue text, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    if hotrow.set_paused(queue, false) then
        perform pg_notify('hotrow_wake', '{{pack}}.queue.take ' || queue);
    end if;
    status := 'resumed';
end
$$;
