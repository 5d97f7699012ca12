-- Extends leases, and redrives dead letters.

create function hotrow.extend_lease_batch(queue text[], receipt bigint[], lease interval[])
returns table (outcome text, expires_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    outcomes text[] := array_fill('unknown_queue'::text, array[cardinality(queue)]);
    ends timestamptz[] := array_fill(null::timestamptz, array[cardinality(queue)]);
    piece record;
    head hotrow.queue_head;
    until timestamptz;
    number int;
    shard int;
begin
    perform hotrow.check_receipts(queue, receipt, array[coalesce(cardinality(lease), 0), array_upper(lease, 1)], null, null, null);
    if array_position(lease, null) > 0 then
        perform hotrow.null_argument('lease');
    elsif interval '0' >= any (lease) or interval '30 days' < any (lease) then
        perform hotrow.bad_argument('lease is 0 or less, or more than 30 days', 'Extend by more than 0 and at most 30 days.');
    end if;
    for piece in
        select q.number, (u.receipt % 16)::int as shard, u.receipt / 16384 as lease, (u.receipt / 16 % 1024)::int as spot,
            u.extension, u.call
        from unnest(queue, receipt, lease) with ordinality u (queue, receipt, extension, call)
            join hotrow.queue q on q.queue = u.queue
        order by q.number, u.receipt % 16, u.call
    loop
        if (piece.number, piece.shard) is distinct from (number, shard) then
            if head.queue is not null then
                perform hotrow.write_head(head);
            end if;
            number := piece.number;
            shard := piece.shard;
            head := hotrow.lock_head(number, shard, true);
            if head.next_due <= head.at then
                head := hotrow.end_leases(head);
            end if;
        end if;
        -- The lease of all orders of one take ends at one time, so one of their receipts is enough to extend it.
        until := null;
        if exists (
            select from (
                select l.* from hotrow.queue_lease l
                where l.queue = number and l.shard = piece.shard and l.lease = piece.lease and l.first <= piece.spot
                order by l.queue desc, l.shard desc, l.lease desc, l.first desc limit 1) l
            where l.first + l.count > piece.spot and l.taken_at is not null and l.due > head.at
                and (l.open is null or get_bit(l.open, piece.spot - l.first) = 1))
        then
            with extended as (
                update hotrow.queue_lease e set due = greatest(e.due, head.at + piece.extension)
                where e.ctid = any (array(
                    select l.ctid from hotrow.queue_lease l
                    where l.queue = number and l.shard = piece.shard and l.lease = piece.lease and l.first >= 0
                    order by l.queue, l.shard, l.lease, l.first))
                returning e.due
            )
            select max(e.due) into until from extended e;
        end if;
        outcomes[piece.call] := case when until is null then 'lease_lost' else 'extended' end;
        ends[piece.call] := until;
    end loop;
    if head.queue is not null then
        perform hotrow.write_head(head);
    end if;
    return query select u.* from unnest(outcomes, ends) u;
end
$$;

create function hotrow.extend_lease(
    queue text, receipt bigint, lease interval, out outcome text, out expires_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    select b.outcome, b.expires_at into extend_lease.outcome, extend_lease.expires_at
    from hotrow.extend_lease_batch(array[queue], array[receipt], array[lease]) b;
end
$$;

-- Redrives dead letters, the oldest first, or one of them. Their attempts begin at 0 again. Returns how many.
create function hotrow.redrive(queue text, max int default 1000, order_id uuid default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    wanted hotrow.queue := hotrow.known_queue(queue);
    head hotrow.queue_head;
    brought record;
    redriven bigint := 0;
    lowest bigint := 0;
    highest bigint := 9223372036854775807;
begin
    if max is null then
        perform hotrow.null_argument('max');
    elsif max not between 1 and 10000 then
        perform hotrow.bad_argument(format('max is %s', max), 'Bring back 1 to 10,000 orders at a time.');
    end if;
    if order_id is not null then
        select o.id, o.id into lowest, highest from hotrow.order_named(wanted.number, redrive.order_id) o;
    end if;
    for redrive_shard in 0 .. wanted.shards - 1 loop
        head := hotrow.lock_head(wanted.number, redrive_shard, true);
        continue when head.queue is null;
        with brought as (
            delete from hotrow.queue_dead d
            where d.ctid = any (array(
                select o.ctid from hotrow.queue_dead o
                where o.queue = wanted.number and o.shard = redrive_shard and o.id >= lowest and o.id <= highest
                order by o.queue, o.id limit max - redriven))
            returning d
        )
        select array_agg((b.d).line) as lines, array_agg((b.d).place) as places, array_agg((b.d).id) as ids,
            array_agg((b.d).rank) as ranks, array_agg((b.d).group_hash) as groups
        into brought from brought b;
        continue when brought.ids is null;
        redriven := redriven + cardinality(brought.ids);
        head.dead := head.dead - cardinality(brought.ids);
        head := hotrow.join_queue(head, brought.lines, brought.places, brought.ids, brought.ranks, brought.groups);
        perform hotrow.write_head(head);
        exit when redriven >= max;
    end loop;
    return redriven;
end
$$;
