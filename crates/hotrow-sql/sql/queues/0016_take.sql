-- take: how callers ask for orders and wait for them. 0015_hand_out.sql decides which orders they get.

-- Refuses arguments that are wrong in every state of the queue.
create function hotrow.check_takes(queue text[], max int[], lease interval[], wait interval[]) returns void
language plpgsql as $$
begin
    perform hotrow.check_batch(cardinality(queue), array_upper(queue, 1), cardinality(max), array_upper(max, 1),
        cardinality(lease), array_upper(lease, 1), cardinality(wait), array_upper(wait, 1));
    if array_position(max, null) > 0 then
        perform hotrow.null_argument('max');
    elsif 1 > any (max) or 1000 < any (max) then
        perform hotrow.bad_argument('max is not between 1 and 1000', 'Take 1 to 1000 orders at a time.');
    elsif interval '0' >= any (lease) or interval '30 days' < any (lease) then
        perform hotrow.bad_argument('lease is 0 or less, or more than 30 days',
            'Lease for as long as the work may take; NULL takes for good, without a lease.');
    elsif interval '0' > any (wait) or interval '1 hour' < any (wait) then
        perform hotrow.bad_argument('wait is below 0 or more than an hour', 'Wait for up to an hour; NULL does not wait.');
    end if;
end
$$;

-- Takes orders and never waits. For a call that would wait, it returns the longest time after which to ask again.
create function hotrow.take_batch(
    queue text[], max int[] default null, lease interval[] default null, wait interval[] default null)
returns table (
    call int, again_in interval, receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int,
    created_at timestamptz, enqueued_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    calls int := cardinality(queue);
begin
    perform hotrow.check_takes(queue, max, lease, wait);
    if calls = 0 then
        return;
    end if;
    max := coalesce(max, array_fill(1, array[calls]));
    lease := coalesce(lease, array_fill(interval '30 seconds', array[calls]));
    if queue[1] = all (queue) and num_nulls(variadic lease) in (0, calls) then
        return query select s.* from hotrow.serve_takes(hotrow.known_queue(take_batch.queue[1]), max, lease, wait) s;
        return;
    end if;
    -- Queues are taken in one order, so two batches wait for each other in one direction only. Within a queue the calls keep
    -- their order, as long as they are of one kind.
    return query
        with called as (
            select u.*, hotrow.known_queue(u.queue) as wanted
            from unnest(queue, max, lease, wait) with ordinality u (queue, max, lease, wait, call)
        ), changes as (
            select c.*, (c.lease is null) <> lag(c.lease is null) over (partition by c.queue order by c.call) as changed
            from called c
        ), runs as (
            select c.*, count(*) filter (where c.changed) over (partition by c.queue order by c.call) as run from changes c
        ), asked as (
            select r.wanted, array_agg(r.call::int order by r.call) as calls, array_agg(r.max order by r.call) as wants,
                array_agg(r.lease order by r.call) as leases, array_agg(r.wait order by r.call) as waits
            from runs r group by r.wanted, r.run order by (r.wanted).number, r.run offset 0
        )
        select a.calls[s.call], s.again_in, s.receipt, s.id, s.order_id, s.payload, s.group_key, s.attempt, s.created_at,
            s.enqueued_at
        from asked a cross join lateral hotrow.serve_takes(a.wanted, a.wants, a.leases, a.waits)
            with ordinality s (call, again_in, receipt, id, order_id, payload, group_key, attempt, created_at, enqueued_at, n)
        order by 1, s.n;
end
$$;

-- Returns whether a take may find anything. It reads without locks.
create function hotrow.has_orders(number int) returns boolean
language plpgsql as $$
declare
    newest record;
begin
    for newest in
        select h, hotrow.look_at_tail(number, l.shard) as t
        from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
        where l.queue = number and l.side = 'h'
    loop
        if not (newest.h).paused and ((newest.h).ready > 0 or (newest.h).next_due <= clock_timestamp()
            or (newest.h).side < (newest.t).side
            or ((newest.h).place, (newest.h).id) < ((newest.t).place, (newest.t).id))
        then
            return true;
        end if;
    end loop;
    return false;
end
$$;

-- The number of changes so far at the end where orders are taken, of all shards.
create function hotrow.head_changes(number int) returns numeric
language plpgsql as $$
begin
    return (select sum(h.seq) from hotrow.queue_lock l cross join lateral hotrow.look_at_head(l.queue, l.shard) h
        where l.queue = number and l.side = 'h');
end
$$;

-- Waits by polling less and less often. Through a gateway, no call polls: the gateway wakes the calls that wait.
--
-- A call that waits must not have the lock of the head, which lasts until the end of its transaction: all calls that take or
-- settle orders of the queue would wait too. It therefore takes the lock only if there may be orders, in a subtransaction. If
-- it finds none, because another call was faster, the subtransaction is rolled back, and the lock is released. If it finds none
-- but has changed the head, because leases have ended or orders have to wait for their groups, the change must be committed:
-- other calls find the later orders only after it. Then the call ends without orders before its time is over. That a shard was
-- changed by another session at that moment is taken for a change of its own.
create function hotrow.take(
    queue text, max int default 1, lease interval default '30 seconds', wait interval default null)
returns table (
    receipt bigint, id bigint, order_id uuid, payload jsonb, group_key text, attempt int, created_at timestamptz,
    enqueued_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    until timestamptz;
    pause double precision := 0.005;
    wanted hotrow.queue;
    changes numeric;
begin
    perform hotrow.check_takes(array[queue], array[max], array[lease], array[wait]);
    if coalesce(wait, '0') = '0' then
        return query select b.receipt, b.id, b.order_id, b.payload, b.group_key, b.attempt, b.created_at, b.enqueued_at
            from hotrow.take_batch(array[take.queue], array[max], array[lease], null) b;
        return;
    end if;
    until := clock_timestamp() + wait;
    loop
        wanted := hotrow.known_queue(queue);
        if hotrow.has_orders(wanted.number) then
            begin
                perform hotrow.lock_head(wanted.number, pg_backend_pid() % wanted.shards, true);
                changes := hotrow.head_changes(wanted.number);
                return query select b.receipt, b.id, b.order_id, b.payload, b.group_key, b.attempt, b.created_at, b.enqueued_at
                    from hotrow.take_batch(array[take.queue], array[max], array[lease], null) b;
                if found or hotrow.head_changes(wanted.number) <> changes then
                    return;
                end if;
                raise exception using errcode = 'HR003';
            exception when sqlstate 'HR003' then null;
            end;
        end if;
        exit when clock_timestamp() >= until;
        perform pg_sleep(least(pause, extract(epoch from until - clock_timestamp())));
        pause := least(pause * 2, 0.1);
    end loop;
end
$$;
