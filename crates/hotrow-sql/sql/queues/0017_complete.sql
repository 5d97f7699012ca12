-- Completes orders that were taken, fails them or gives them back. 0018_extend_redrive.sql extends leases.
--
-- A receipt names a lease of a shard and the order's place in it. Each take makes a new lease, so a worker with an old receipt
-- is refused, whatever the order's state is. A worker whose lease has ended is refused too, even if no call has removed the
-- lease yet (hotrow.end_leases).

-- Takes the orders that receipts of one shard stand for, each once, out of their leases. The other orders of a run stay
-- leased. `n` is the receipt's place in the call. Receipts that are no longer valid are missing from the result.
create function hotrow.give_back(head hotrow.queue_head, receipts bigint[])
returns table (
    n int, line smallint, place bigint, id bigint, rank bigint, group_hash bigint, order_id uuid, at timestamptz,
    attempt smallint, taken_at timestamptz)
language plpgsql rows 100 as $$
#variable_conflict use_column
begin
    return query
        with named as (
            select u.receipt / 16384 as lease, (u.receipt / 16 % 1024)::int as spot, min(u.n)::int as n
            from unnest(receipts) with ordinality u (receipt, n) group by u.receipt
        ), found as (
            select n.n, n.spot - l.first as number, l.*
            from named n cross join lateral (
                select l.ctid as tid, l.first, l.count, l.open, l.line, l.attempt, l.from_place, l.from_id, l.to_place,
                    l.to_id, l.taken_at, l.due
                from hotrow.queue_lease l
                where l.queue = head.queue and l.shard = head.shard and l.lease = n.lease and l.first <= n.spot
                order by l.queue desc, l.shard desc, l.lease desc, l.first desc limit 1) l
            where n.spot < l.first + l.count and l.taken_at is not null and l.due > head.at
                and (l.open is null or get_bit(l.open, n.spot - l.first) = 1)
        ), runs as (
            select f.tid, f.count, f.open, f.line, f.attempt, f.from_place, f.from_id, f.to_place, f.to_id, f.taken_at,
                array_agg(f.n) as ns, array_agg(f.number) as numbers
            from found f
            group by f.tid, f.count, f.open, f.line, f.attempt, f.from_place, f.from_id, f.to_place, f.to_id, f.taken_at
        ), gone as (
            delete from hotrow.queue_lease l
            where l.ctid = any (array(
                select r.tid from runs r where cardinality(r.ns) = coalesce(bit_count(r.open), r.count)))
        ), left_over as (
            update hotrow.queue_lease l set open = (
                select hotrow.without_bits(coalesce(r.open, repeat('1', r.count)::bit varying), r.numbers)
                from runs r where r.tid = l.ctid)
            where l.ctid = any (array(
                select r.tid from runs r where cardinality(r.ns) < coalesce(bit_count(r.open), r.count)))
        )
        select o.n, r.line, o.place, o.id, coalesce(o.rank, o.place), o.group_hash, o.order_id, o.at, r.attempt, r.taken_at
        from runs r cross join lateral (
            select r.ns[1] as n, o.place, o.id, o.rank, o.group_hash, o.order_id, o.at
            from hotrow.order_at(head.queue, r.line, r.from_place, r.from_id) o where r.count = 1
            union all
            select r.ns[array_position(r.numbers, o.number)],
                o.place, o.id, o.rank, o.group_hash, o.order_id, o.at
            from (
                select (row_number() over ())::int - 1 as number, o.* from (
                    select o.place, o.id, o.rank, o.group_hash, o.order_id, o.at from hotrow.queue_order o
                    where r.count > 1 and o.queue = head.queue and o.line = r.line
                        and (o.place, o.id) >= (r.from_place, r.from_id) and (o.place, o.id) <= (r.to_place, r.to_id)
                    order by o.queue, o.line, o.place, o.id) o) o
            where o.number = any (r.numbers)) o;
end
$$;

create function hotrow.without_bits(bits bit varying, gone int[]) returns bit varying
language plpgsql immutable as $$
declare
    i int;
begin
    foreach i in array gone loop
        bits := set_bit(bits::bit varying, i, 0);
    end loop;
    return bits;
end
$$;

-- Handles the usual case at a fraction of the cost: leases whose orders are all completed at once. Decisions that are the same
-- for all orders of a lease are made once for the lease, and the orders are recorded straight from their rows. If the head has
-- come to the present part of the ring, only that part is opened, and leases of orders before it are not handled here. Returns
-- the leases.
create function hotrow.complete_leases(
    inout head hotrow.queue_head, receipts bigint[], statuses int[], results jsonb[], out whole bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    alike boolean := results is null and statuses[1] = all (statuses);
    tail hotrow.queue_tail := hotrow.look_at_tail(head.queue, head.shard);
    -- An order of the side line can be in any part.
    present boolean := tail.side = 0 and (head.place, head.id) >= (tail.part_place, tail.part_id);
    first_part smallint := case when present then tail.part else 0 end;
    last_part smallint := case when present then tail.part else 3 end;
    done record;
begin
    with leases as (
        select u.receipt / 16384 as lease, min(u.n)::int as n, count(*) as orders, count(distinct u.receipt) as different,
            (min(u.receipt) / 16 % 1024)::int as low, (max(u.receipt) / 16 % 1024)::int as high
        from unnest(receipts) with ordinality u (receipt, n) group by u.receipt / 16384
    ), found as (
        select s.n, s.orders, l.* from leases s cross join lateral (
            select l.ctid as tid, l.lease, l.line, l.attempt, l.first, l.count, l.open, l.from_place, l.from_id, l.to_place,
                l.to_id, l.taken_at, l.due
            from hotrow.queue_lease l
            where l.queue = head.queue and l.shard = head.shard and l.lease = s.lease and l.first <= s.low
            order by l.queue desc, l.shard desc, l.lease desc, l.first desc limit 1) l
        where s.orders = s.different and (alike or s.orders = 1) and l.first = s.low and l.count = s.orders
            and l.first + l.count - 1 = s.high and l.open is null and l.taken_at is not null
            and l.due > head.at and (not present or (l.from_place, l.from_id) > (tail.part_place, tail.part_id))
    ), gone as (
        delete from hotrow.queue_lease l where l.ctid = any (array(select f.tid from found f))
    ), orders as (
        select f.n, f.attempt, f.taken_at, o.id, o.order_id, o.at, o.group_hash, coalesce(o.rank, o.place) as rank
        from found f cross join lateral (
            select o.* from hotrow.queue_order o
            where o.queue = head.queue and o.line = f.line
                and (o.place, o.id) >= (f.from_place, f.from_id) and (o.place, o.id) <= (f.to_place, f.to_id)
                and o.part >= first_part and o.part <= last_part
            order by o.queue, o.line, o.place, o.id offset 0) o
    ), recorded as (
        insert into hotrow.processed_order
            (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status, result)
        select head.queue, head.part, o.attempt, o.id, o.order_id, o.at, o.taken_at, head.at, statuses[o.n], results[o.n]
        from orders o
    )
    select (select array_agg(f.lease) from found f) as leases, (select sum(f.orders) from found f) as orders,
        array_agg(o.group_hash) as groups, array_agg(o.rank) as ranks, array_agg(o.id) as ids
    into done from orders o where o.group_hash is not null;
    whole := done.leases;
    head.in_flight := head.in_flight - coalesce(done.orders, 0);
    head.processed := head.processed + coalesce(done.orders, 0);
    if done.ids is not null then
        head := hotrow.leave_groups(head, done.groups, done.ranks, done.ids);
    end if;
end
$$;

-- Completes orders one by one, among them those whose lease has other orders too. An outcome that is `lease_lost` becomes
-- `completed` if the receipt is valid.
create function hotrow.complete_singly(
    inout head hotrow.queue_head, receipts bigint[], statuses int[], results jsonb[], inout outcomes text[])
language plpgsql as $$
declare
    good record;
    i int;
begin
    with given as materialized (
        select g.* from hotrow.give_back(head, receipts) g
    ), done as (
        insert into hotrow.processed_order
            (queue, part, attempt, id, order_id, enqueued_at, taken_at, done_at, status, result)
        select head.queue, head.part, g.attempt, g.id, g.order_id, g.at, g.taken_at, head.at, u.status, u.result
        from given g join unnest(statuses, results) with ordinality u (status, result, n) on u.n = g.n
    )
    select array_agg(g.n) as ns, array_agg(g.group_hash) as groups, array_agg(g.rank) as ranks, array_agg(g.id) as ids
    into good from given g;
    foreach i in array coalesce(good.ns, '{}') loop
        outcomes[i] := 'completed';
    end loop;
    head.processed := head.processed + coalesce(cardinality(good.ns), 0);
    if num_nonnulls(variadic good.groups) > 0 then
        head := hotrow.leave_groups(head, good.groups, good.ranks, good.ids);
    end if;
    head.in_flight := head.in_flight - coalesce(cardinality(good.ns), 0);
end
$$;

-- Fails orders or releases them. Each becomes ready, waits for its next attempt, or is dead-lettered.
create function hotrow.fail_or_release(
    inout head hotrow.queue_head, wanted hotrow.queue, action text, receipts bigint[], errors text[], retry_in interval[],
    inout outcomes text[])
language plpgsql as $$
declare
    good record;
begin
    select array_agg(g.n) as ns, array_agg(g.line) as lines, array_agg(g.place) as places, array_agg(g.id) as ids,
        array_agg(g.rank) as ranks, array_agg(g.group_hash) as groups,
        array_agg((g.attempt - (action = 'release')::int)::smallint) as attempts, array_agg(g.taken_at) as taken,
        array_agg(case when action = 'release' then interval '0' when g.attempt >= wanted.max_attempts then null
            else coalesce(retry_in[g.n], make_interval(secs => least(
                extract(epoch from wanted.retry)::float8 * power(2::float8, least(g.attempt - 1, 64)), 86400))) end) as pauses,
        array_agg(errors[g.n]) as errors
    into good from hotrow.give_back(head, receipts) g;
    for i in 1 .. coalesce(cardinality(good.ns), 0) loop
        outcomes[good.ns[i]] := case when action = 'release' then 'released'
            when good.pauses[i] is null then 'dead' else 'retrying' end;
        if good.pauses[i] is null then
            head := hotrow.bury(head, good.lines[i : i], good.places[i : i], good.ids[i : i], good.errors[i : i],
                good.attempts[i : i], good.taken[i : i]);
        elsif good.pauses[i] <= '0' then
            head := hotrow.make_ready(head, good.lines[i : i], good.places[i : i], good.ids[i : i], good.ranks[i : i],
                good.groups[i : i], good.attempts[i : i]);
        else
            head.leases := head.leases + 1;
            head.next_due := least(head.next_due, head.at + good.pauses[i]);
            insert into hotrow.queue_lease (queue, shard, line, attempt, lease, first, count,
                from_place, from_id, to_place, to_id, due, rank)
            values (head.queue, head.shard, good.lines[i], good.attempts[i], head.leases, 0, 1,
                good.places[i], good.ids[i], good.places[i], good.ids[i], head.at + good.pauses[i], good.ranks[i]);
        end if;
    end loop;
    head.in_flight := head.in_flight - coalesce(cardinality(good.ns), 0);
end
$$;

-- Runs one call for each receipt of one shard: removes the order from its lease, then does what the caller asks. Returns one
-- outcome for each call.
create function hotrow.settle_shard(
    wanted hotrow.queue, shard int, action text, receipts bigint[], statuses int[], results jsonb[], errors text[],
    retry_in interval[])
returns text[]
language plpgsql as $$
declare
    head hotrow.queue_head := hotrow.lock_head(wanted.number, shard, true);
    outcomes text[] := array_fill('lease_lost'::text, array[cardinality(receipts)]);
    settled record;
begin
    if head.queue is null then
        return outcomes;
    end if;
    if head.next_due <= head.at then
        head := hotrow.end_leases(head);
    end if;
    if action = 'complete' then
        settled := hotrow.complete_leases(head, receipts, statuses, results);
        head := settled.head;
        outcomes := array(
            select case when u.receipt / 16384 = any (settled.whole) then 'completed' else 'lease_lost' end
            from unnest(receipts) with ordinality u (receipt, n) order by u.n);
        if array_position(outcomes, 'lease_lost') is not null then
            settled := hotrow.complete_singly(head, receipts, statuses, results, outcomes);
            head := settled.head;
            outcomes := settled.outcomes;
        end if;
    else
        settled := hotrow.fail_or_release(head, wanted, action, receipts, errors, retry_in, outcomes);
        head := settled.head;
        outcomes := settled.outcomes;
    end if;
    perform hotrow.write_head(head);
    return outcomes;
end
$$;

-- Runs one call for each receipt, of any queues, shard by shard in one order. Two batches therefore wait for each other in one
-- direction only. Returns one outcome for each call, in the order of the calls.
create function hotrow.settle(
    action text, queue text[], receipt bigint[], statuses int[], results jsonb[], errors text[], retry_in interval[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    outcomes text[] := array_fill('unknown_queue'::text, array[cardinality(queue)]);
    piece record;
    answers text[];
    only_one hotrow.queue;
begin
    if queue[1] = all (queue) then
        -- Receipts of another shard are not handled here.
        select q.* into only_one from hotrow.queue q
        where q.queue = settle.queue[1] and q.shards = 1 and not exists (
            select from unnest(receipt) r (receipt) where r.receipt % 16 <> 0);
        if found then
            return hotrow.settle_shard(only_one, 0, action, receipt, statuses, results, errors, retry_in);
        end if;
    end if;
    for piece in
        select q{{many}}::text::hotrow.queue{{end}} as wanted, u.receipt % 16 as shard, array_agg(u.call::int order by u.call) as calls,
            array_agg(u.receipt order by u.call) as receipts
        from unnest(queue, receipt) with ordinality u (queue, receipt, call) join hotrow.queue q on q.queue = u.queue
        group by q, q.number, u.receipt % 16 order by q.number, u.receipt % 16
    loop
        if cardinality(piece.calls) = cardinality(queue) then
            return hotrow.settle_shard(
                piece.wanted, piece.shard::int, action, receipt, statuses, results, errors, retry_in);
        end if;
        answers := hotrow.settle_shard(piece.wanted, piece.shard::int, action, piece.receipts,
            array(select statuses[c] from unnest(piece.calls) c), array(select results[c] from unnest(piece.calls) c),
            array(select errors[c] from unnest(piece.calls) c), array(select retry_in[c] from unnest(piece.calls) c));
        for i in 1 .. cardinality(answers) loop
            outcomes[piece.calls[i]] := answers[i];
        end loop;
    end loop;
    return outcomes;
end
$$;

-- Refuses arguments that are wrong in every state of the queue.
create function hotrow.check_receipts(
    queue text[], receipt bigint[], lengths int[], status int[], result jsonb[], retry_in interval[]) returns void
language plpgsql as $$
begin
    perform hotrow.check_batch(cardinality(queue),
        variadic array[array_upper(queue, 1), coalesce(cardinality(receipt), 0), array_upper(receipt, 1)] || lengths);
    if array_position(queue, null) > 0 then
        perform hotrow.null_argument('queue');
    elsif array_position(receipt, null) > 0 then
        perform hotrow.null_argument('receipt');
    elsif array_position(status, null) > 0 then
        perform hotrow.null_argument('status');
    elsif interval '0' > any (retry_in) or interval '365 days' < any (retry_in) then
        perform hotrow.bad_argument('retry_in is below 0 or more than a year', 'Retry after a time within a year.');
    end if;
    perform hotrow.check_documents('result', result, 'Store what is larger elsewhere and record where it is.');
end
$$;

create function hotrow.complete_batch(
    queue text[], receipt bigint[], status int[] default null, result jsonb[] default null)
returns table (outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    perform hotrow.check_receipts(queue, receipt,
        array[cardinality(status), array_upper(status, 1), cardinality(result), array_upper(result, 1)], status, result, null);
    return query select unnest(hotrow.settle('complete', queue, receipt,
        coalesce(status, array_fill(0, array[cardinality(queue)])), result, null, null));
end
$$;

create function hotrow.complete(
    queue text, receipt bigint, status int default 0, result jsonb default null, out outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    select b.outcome into complete.outcome
    from hotrow.complete_batch(array[queue], array[receipt], array[status], array[result]) b;
end
$$;

-- The receipts of one take, or a part of them, completed in one call. A domain, because PostgreSQL has no array of bigint[].
create domain hotrow.receipts as bigint[];

create function hotrow.complete_all_batch(
    queue text[], receipts {{pack}}.receipts[], status int[] default null, result jsonb[] default null)
returns table (call int, receipt bigint, outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    every record;
begin
    perform hotrow.check_batch(cardinality(queue), array_upper(queue, 1), coalesce(cardinality(receipts), 0),
        array_upper(receipts, 1), cardinality(status), array_upper(status, 1), cardinality(result), array_upper(result, 1));
    if array_position(queue, null) > 0 or array_position(receipts, null) > 0 or array_position(status, null) > 0 then
        perform hotrow.null_argument('queue, receipts or status');
    end if;
    select array_agg(u.call::int) as calls, array_agg(u.queue) as queues, array_agg(r.receipt) as receipts,
        array_agg(coalesce(u.status, 0)) as statuses, max(r.place) as most, bool_or(r.receipt is null) as has_null,
        case when num_nonnulls(variadic complete_all_batch.result) > 0 then array_agg(u.result) end as results
    into every
    from unnest(queue, receipts, status, result) with ordinality u (queue, receipts, status, result, call)
        cross join lateral unnest(u.receipts) with ordinality r (receipt, place);
    if every.most > 1000 then
        perform hotrow.bad_argument(format('there are %s receipts', every.most), 'Complete at most 1000 receipts at a time.');
    elsif every.has_null then
        perform hotrow.null_argument('a receipt');
    elsif every.calls is null then
        return;
    end if;
    return query select u.call, u.receipt, u.outcome
        from unnest(every.calls, every.receipts, hotrow.settle('complete', every.queues, every.receipts, every.statuses,
            every.results, null, null)) u (call, receipt, outcome);
end
$$;

create function hotrow.complete_all(
    queue text, receipts {{pack}}.receipts, status int default 0, result jsonb default null)
returns table (receipt bigint, outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query select b.receipt, b.outcome
        from hotrow.complete_all_batch(array[queue], array[receipts], array[status], array[result]) b;
end
$$;

create function hotrow.fail_batch(
    queue text[], receipt bigint[], error text[] default null, retry_in interval[] default null)
returns table (outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    perform hotrow.check_receipts(queue, receipt, array[cardinality(error), array_upper(error, 1), cardinality(retry_in),
        array_upper(retry_in, 1)], null, null, retry_in);
    return query select unnest(hotrow.settle('fail', queue, receipt, null, null,
        array(select left(e.error, 2000) from unnest(error) with ordinality e (error, n) order by e.n), retry_in));
end
$$;

create function hotrow.fail(
    queue text, receipt bigint, error text default null, retry_in interval default null, out outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    select b.outcome into fail.outcome
    from hotrow.fail_batch(array[queue], array[receipt], array[error], array[retry_in]) b;
end
$$;

create function hotrow.release_batch(queue text[], receipt bigint[]) returns table (outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    perform hotrow.check_receipts(queue, receipt, '{}', null, null, null);
    return query select unnest(hotrow.settle('release', queue, receipt, null, null, null, null));
end
$$;

-- Gives an order back as if it had not been taken.
create function hotrow.release(queue text, receipt bigint, out outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    select b.outcome into release.outcome from hotrow.release_batch(array[queue], array[receipt]) b;
end
$$;
