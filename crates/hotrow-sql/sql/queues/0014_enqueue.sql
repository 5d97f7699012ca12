-- Enqueues orders. Other files hand them out.

-- Returns whether a document's text has more than this many bytes. A number of 16 bytes can have a text of 131,072 bytes, and
-- a text of more than 1 GB fails in every call that hands it out. The text of a long document is therefore made only after its
-- long numbers have been measured one by one, up to the limit. All other values grow eightfold at most.
create function hotrow.is_longer(document jsonb, most int) returns boolean
language plpgsql immutable as $$
declare
    number jsonb;
    size int := 0;
begin
    if pg_column_size(document) > 2000 then
        for number in
            select n.number from jsonb_path_query(document, 'strict $.** ? (@.type() == "number")') n (number)
            where abs(n.number::numeric) > 1e40 or scale(n.number::numeric) > 40
        loop
            size := size + octet_length(number::text);
            if size > most then
                return true;
            end if;
        end loop;
    end if;
    return octet_length(document::text) > most;
end
$$;

-- Refuses documents whose text is too long. A document of up to 32 bytes holds one number at most, so its text is not too long.
create function hotrow.check_documents(what text, documents jsonb[], hint text) returns void
language plpgsql as $$
begin
    if pg_column_size(documents) > 32 and exists (
        select from unnest(documents) d (document)
        where pg_column_size(d.document) > 32 and hotrow.is_longer(d.document, 256000))
    then
        perform hotrow.bad_argument(format('the text of a %s has more than 256,000 bytes', what), hint);
    end if;
end
$$;

-- Refuses arguments that are wrong in every state of the queue, before the call waits for a lock.
create function hotrow.check_orders(
    queue text[], order_id uuid[], payload jsonb[], group_key text[], created_at timestamptz[],
    not_before timestamptz[], priority int[]) returns void
language plpgsql as $$
begin
    perform hotrow.check_batch(cardinality(queue), array_upper(queue, 1), coalesce(cardinality(order_id), 0),
        array_upper(order_id, 1), cardinality(payload), array_upper(payload, 1), cardinality(group_key),
        array_upper(group_key, 1), cardinality(created_at), array_upper(created_at, 1), cardinality(not_before),
        array_upper(not_before, 1), cardinality(priority), array_upper(priority, 1));
    if array_position(queue, null) > 0 then
        perform hotrow.null_argument('queue');
    elsif array_position(order_id, null) > 0 then
        perform hotrow.null_argument('order_id');
    elsif 60 < any (priority) or -60 > any (priority) then
        perform hotrow.bad_argument('a priority is not between -60 and 60', 'Order within the range; 0 is usual.');
    elsif '1970-01-01' > any (created_at) or '2200-01-01' < any (created_at) then
        perform hotrow.bad_argument('created_at is not between 1970 and 2200', 'Give the time of the order, or none.');
    elsif '1970-01-01' > any (not_before) or '2200-01-01' < any (not_before) then
        perform hotrow.bad_argument('not_before is not between 1970 and 2200', 'Give a time from 1970 to 2200, or none.');
    elsif octet_length(array_to_string(group_key, '')) > 500 or '' = any (group_key) then
        perform hotrow.check_name('group_key', g.name) from unnest(group_key) g (name)
        where g.name = '' or octet_length(g.name) > 500;
    end if;
    perform hotrow.check_documents('payload', payload, 'Store what is larger elsewhere and enqueue where it is.');
end
$$;

-- Returns the orders that exist already. Each is looked up by itself: a planner that takes the queue for small would use an
-- array of IDs only as a filter.
create function hotrow.orders_known(number int, ids uuid[]) returns table (order_id uuid, id bigint)
language sql stable as $$
    select o.order_id, o.id from (select distinct u.order_id from unnest(ids) u (order_id)) u
        cross join lateral hotrow.order_named(number, u.order_id) o
$$;

-- Adds orders to a shard, each to its line, and moves the tail past them. An order that sorts after all of the main line and
-- has no delay joins it. The orders in `known` exist already. Each order's ID is `base` plus a multiple of the number of shards.
create function hotrow.sort_in(
    inout tail hotrow.queue_tail, wanted hotrow.queue, base bigint, now_at timestamptz, known uuid[], order_id uuid[],
    payload jsonb[], group_key text[], groups bigint[], created_at timestamptz[], not_before timestamptz[], priority int[],
    out added uuid[], out added_ids bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    created timestamptz := case when wanted.order_by = 'arrival' then now_at else tail.at end;
begin
    with ranked as (
        select u.*, base + u.n * wanted.shards as id, r.rank,
            u.not_before is null and coalesce(u.priority, 0) = 0 and r.rank >= tail.place as in_order
        from unnest(order_id, payload, group_key, groups, created_at, not_before, priority)
                with ordinality u (order_id, payload, group_key, group_hash, created_at, not_before, priority, n)
            cross join lateral hotrow.rank_of(wanted.order_by, base + u.n * wanted.shards,
                coalesce(u.created_at, created), coalesce(u.priority, 0)) r (rank)
        where known is null or u.order_id <> all (known)
    ), lined as (
        select r.*, r.in_order and r.rank >= max(r.rank) filter (where r.in_order) over (order by r.n) as joins
        from ranked r
    ), new as (
        insert into hotrow.queue_order
            (queue, line, part, place, id, order_id, rank, group_hash, created_at, at, not_before, group_key, payload)
        select wanted.number, tail.shard * 2 + case when l.joins then 0 else 1 end, tail.part,
            case when l.joins then l.rank else l.id end, l.id, l.order_id,
            case when l.joins then null else l.rank end, l.group_hash, coalesce(l.created_at, created), now_at,
            l.not_before, l.group_key, l.payload
        from lined l
        on conflict (queue, order_id, part) do nothing returning order_id, id, line, place
    )
    select array_agg(new.order_id), array_agg(new.id),
        coalesce(max(new.place) filter (where new.line = tail.shard * 2), tail.place),
        coalesce(max(new.id) filter (where new.line = tail.shard * 2), tail.id),
        coalesce(max(new.id) filter (where new.line <> tail.shard * 2), tail.side),
        tail.sidelined + count(*) filter (where new.line <> tail.shard * 2)
    into added, added_ids, tail.place, tail.id, tail.side, tail.sidelined from new;
end
$$;

-- Answers calls of which some have added nothing. Such a call repeats an order: one that existed, or an earlier one of this
-- batch.
create function hotrow.answer_repeated(
    number int, calls int[], order_id uuid[], known uuid[], known_ids bigint[], added uuid[], added_ids bigint[])
returns table (call int, id bigint, status text)
language plpgsql as $$
#variable_conflict use_column
begin
    if known is null or cardinality(added_ids) + cardinality(known) < cardinality(calls) then
        select array_agg(k.order_id), array_agg(k.id) into known, known_ids
        from hotrow.orders_known(number, answer_repeated.order_id) k;
    end if;
    return query
        select u.call, k.id, case when u.first and k.id = any (added_ids) then 'enqueued' else 'duplicate' end
        from (
            select u.*, row_number() over (partition by u.order_id order by u.n) = 1 as first
            from unnest(calls, order_id) with ordinality u (call, order_id, n)) u
            left join (
                select k.* from unnest(known, known_ids) k (order_id, id)
                union select a.* from unnest(added, added_ids) a (order_id, id)) k on k.order_id = u.order_id
        order by u.n;
end
$$;

-- Enqueues the orders of calls in one shard. IDs come from the tail's row under its lock and therefore become visible in their
-- order.
create function hotrow.append_orders(
    wanted hotrow.queue, shard int, calls int[], order_id uuid[], payload jsonb[], group_key text[],
    groups bigint[], created_at timestamptz[], not_before timestamptz[], priority int[])
returns table (call int, id bigint, status text)
language plpgsql as $$
#variable_conflict use_column
declare
    tail hotrow.queue_tail;
    -- The time of arrival of these orders. In order of arrival, it is the created_at of orders whose call gives none.
    now_at timestamptz;
    n int := cardinality(calls);
    known uuid[];
    known_ids bigint[];
    added uuid[];
    added_ids bigint[];
    sorted record;
    -- If the queue is in order of arrival and no order has a priority or a delay, all orders join the main line.
    plain boolean := wanted.order_by = 'arrival' and coalesce(num_nonnulls(variadic not_before), 0) = 0
        and coalesce(num_nonnulls(variadic priority), 0) = 0;
    base bigint;
begin
    if not plain then
        perform hotrow.help_side_line(wanted.number, shard);
    end if;
    tail := hotrow.lock_tail(wanted.number, shard);
    now_at := clock_timestamp();
    -- The shards' IDs interleave: each round of IDs has one for every shard.
    base := (tail.last_id - 1) * wanted.shards + shard + 1;
    if tail.queue is null then
        perform hotrow.known_queue(wanted.queue); -- raises an error if the queue has been dropped since
    end if;
    select array_agg(k.order_id), array_agg(k.id) into known, known_ids
    from hotrow.orders_known(wanted.number, append_orders.order_id) k;
    if plain then
        with new as (
            insert into hotrow.queue_order
                (queue, line, part, place, id, order_id, group_hash, created_at, at, group_key, payload)
            select wanted.number, shard * 2, tail.part, base + u.n * wanted.shards, base + u.n * wanted.shards,
                u.order_id, u.group_hash, coalesce(u.created_at, now_at), now_at, u.group_key, u.payload
            from unnest(order_id, payload, group_key, groups, created_at)
                with ordinality u (order_id, payload, group_key, group_hash, created_at, n)
            where known is null or u.order_id <> all (known)
            on conflict (queue, order_id, part) do nothing returning order_id, id
        )
        select array_agg(new.order_id), array_agg(new.id) into added, added_ids from new;
        if added_ids is not null then
            tail.place := added_ids[cardinality(added_ids)];
            tail.id := tail.place;
        end if;
    else
        sorted := hotrow.sort_in(tail, wanted, base, now_at, known, order_id, payload, group_key, groups, created_at,
            not_before, priority);
        tail := sorted.tail;
        added := sorted.added;
        added_ids := sorted.added_ids;
    end if;
    tail.last_id := tail.last_id + n;
    if added_ids is not null then
        tail.grouped := tail.grouped or coalesce(num_nonnulls(variadic groups), 0) > 0;
        perform hotrow.write_tail(tail, cardinality(added_ids));
    end if;
    if cardinality(added_ids) = n then
        return query select u.call, u.id, 'enqueued' from unnest(calls, added_ids) u (call, id);
    else
        return query select a.*
            from hotrow.answer_repeated(wanted.number, calls, order_id, known, known_ids, added, added_ids) a;
    end if;
end
$$;

-- Returns the rank of an order: the least rank is taken first. A priority outweighs everything else.
create function hotrow.rank_of(order_by text, id bigint, created_at timestamptz, priority int, out rank bigint)
language sql immutable as $$
    select case when order_by = 'arrival' then id else (extract(epoch from created_at) * 1000000)::bigint end
        - priority::bigint * 72057594037927936
$$;

-- Writes the state of a shard's tail as the next version, and wakes calls that wait for the added orders.
create function hotrow.write_tail(tail hotrow.queue_tail, added int) returns void
language plpgsql as $$
declare
    now_at timestamptz := clock_timestamp();
begin
    if tail.waited and added > 0 then
        tail.waited := false;
        perform hotrow.wake_takers(tail.queue);
    end if;
    update hotrow.queue_tail t
    set seq = t.seq + 1, last_id = tail.last_id, place = tail.place, id = tail.id, side = tail.side,
        sidelined = tail.sidelined, grouped = tail.grouped, enqueued = t.enqueued + added, waited = tail.waited, at = tail.at,
        minute = date_trunc('minute', now_at, 'UTC'),
        this_minute = added + hotrow.in_this_minute(t.minute, t.this_minute, now_at),
        last_minute = hotrow.in_last_minute(t.minute, t.this_minute, t.last_minute, now_at)
    where t.queue = tail.queue and t.shard = tail.shard and t.seq = tail.seq;
    if not found then
        perform hotrow.refuse_old_state();
    end if;
end
$$;

create function hotrow.enqueue_batch(
    queue text[], order_id uuid[], payload jsonb[] default null, group_key text[] default null,
    created_at timestamptz[] default null, not_before timestamptz[] default null, priority int[] default null)
returns table (id bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    calls int := cardinality(queue);
    wanted hotrow.queue;
begin
    perform hotrow.check_orders(queue, order_id, payload, group_key, created_at, not_before, priority);
    if calls = 0 then
        return;
    end if;
    if queue[1] = all (queue) then
        select q.* into wanted from hotrow.queue q where q.queue = enqueue_batch.queue[1];
        if wanted.shards = 1 then
            return query select a.id, a.status from hotrow.append_orders(wanted, 0,
                array(select generate_series(1, calls)), order_id, payload, group_key,
                hotrow.hash_groups(wanted.strict_groups, group_key), created_at, not_before, priority) a;
            return;
        end if;
    end if;
    -- Shards are taken in one order, so two batches wait for each other in one direction only.
    return query
        with called as (
            select u.*, q{{many}}::text::hotrow.queue{{end}} as wanted, g.group_hash, 
                (coalesce(g.group_hash, uuid_hash_extended(u.order_id, 0)) % q.shards + q.shards) % q.shards as shard
            from unnest(queue, order_id, payload, group_key, created_at, not_before, priority)
                    with ordinality u (queue, order_id, payload, group_key, created_at, not_before, priority, call)
                left join hotrow.queue q on q.queue = u.queue
                cross join lateral (
                    select hashtextextended(u.group_key collate "C", 0) as group_hash) g
        ), shards as (
            select c.wanted, c.shard, array_agg(c.call::int order by c.call) as calls,
                array_agg(c.order_id order by c.call) as order_ids, array_agg(c.payload order by c.call) as payloads,
                array_agg(c.group_key order by c.call) as group_keys,
                array_agg(case when (c.wanted).strict_groups then c.group_hash end order by c.call) as groups,
                array_agg(c.created_at order by c.call) as created, array_agg(c.not_before order by c.call) as waits,
                array_agg(c.priority order by c.call) as priorities
            from called c where c.shard is not null group by c.wanted, c.shard
        ), answers as (
            select a.* from (select s.* from shards s order by (s.wanted).number, s.shard offset 0) s
                cross join lateral hotrow.append_orders(s.wanted, s.shard::int, s.calls, s.order_ids, s.payloads, s.group_keys,
                    s.groups, s.created, case when num_nonnulls(variadic s.waits) > 0 then s.waits end,
                    case when num_nonnulls(variadic s.priorities) > 0 then s.priorities end) a
        )
        select a.id, coalesce(a.status, 'unknown_queue')
        from generate_series(1, calls) u (call) left join answers a on a.call = u.call order by u.call;
end
$$;

-- Returns the hashes of groups; NULL if no order has a group, or if the order within groups does not matter.
create function hotrow.hash_groups(strict_groups boolean, group_key text[]) returns bigint[]
language plpgsql immutable as $$
begin
    if strict_groups and num_nonnulls(variadic group_key) > 0 then
        return array(
            select hashtextextended(g.name collate "C", 0) from unnest(group_key) with ordinality g (name, n) order by g.n);
    end if;
    return null;
end
$$;

create function hotrow.enqueue(
    queue text, order_id uuid, payload jsonb default null, group_key text default null,
    created_at timestamptz default null, not_before timestamptz default null, priority int default null,
    out id bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    select b.id, b.status into enqueue.id, enqueue.status
    from hotrow.enqueue_batch(array[enqueue.queue], array[enqueue.order_id],
        array[payload], array[group_key], array[created_at], array[not_before], array[priority]) b;
end
$$;

-- Reads a call's orders: objects whose fields have the names of the arguments of enqueue.
create function hotrow.enqueue_objects(queue text, orders jsonb) returns table (id bigint, status text)
language plpgsql as $$
#variable_conflict use_column
declare
    every record;
begin
    if queue is null or orders is null then
        perform hotrow.null_argument('queue or orders');
    elsif jsonb_typeof(orders) <> 'array' then
        perform hotrow.bad_argument(format('orders is a JSON %s', jsonb_typeof(orders)), 'Give an array of objects.');
    end if;
    perform hotrow.bad_argument('an order is no JSON object', 'Give an array of objects.')
    from jsonb_array_elements(orders) u (entry) where jsonb_typeof(u.entry) <> 'object';
    perform hotrow.bad_argument(format('an order has a field %L', k.field),
        'The fields are order_id, payload, group_key, created_at, not_before and priority.')
    from jsonb_array_elements(orders) u (entry) cross join lateral jsonb_object_keys(u.entry) k (field)
    where k.field not in ('order_id', 'payload', 'group_key', 'created_at', 'not_before', 'priority');
    select array_agg(u.order_id) as order_ids, array_agg(u.payload) as payloads, array_agg(u.group_key) as group_keys,
        array_agg(u.created_at) as created, array_agg(u.not_before) as waits, array_agg(u.priority) as priorities
    into every
    from jsonb_to_recordset(orders) u (order_id uuid, payload jsonb, group_key text, created_at timestamptz,
        not_before timestamptz, priority int);
    if every.order_ids is not null then
        return query select b.id, b.status from hotrow.enqueue_batch(
            array_fill(queue, array[cardinality(every.order_ids)]), every.order_ids, every.payloads, every.group_keys,
            every.created, every.waits, every.priorities) b;
    end if;
end
$$;

-- Queues are taken in one order, so two batches wait for each other in one direction only.
create function hotrow.enqueue_all_batch(queue text[], orders jsonb[])
returns table (call int, id bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    perform hotrow.check_batch(cardinality(queue), array_upper(queue, 1), coalesce(cardinality(orders), 0), array_upper(orders, 1));
    return query
        select c.call::int, o.id, o.status
        from (
            select u.* from unnest(queue, orders) with ordinality u (queue, orders, call)
                left join hotrow.queue q on q.queue = u.queue
            order by q.number, u.call offset 0) c
            cross join lateral hotrow.enqueue_objects(c.queue, c.orders) with ordinality o (id, status, place)
        order by c.call, o.place;
end
$$;

-- Enqueues many orders in one call, all of them or none, from a JSON array.
create function hotrow.enqueue_all(queue text, orders jsonb) returns table (id bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query select o.id, o.status from hotrow.enqueue_objects(queue, orders) o;
end
$$;
