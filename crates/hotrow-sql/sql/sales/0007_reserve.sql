-- Reserving: finds hopeless calls without a lock, and judges the others under the sale's row lock.

-- A refusal of all calls for an item, with the item's stock; NULL if there is none. A function that returns a named type costs
-- less than one with OUT parameters, because the server does not have to describe its result in each call.
create type hotrow.certain_refusal as (refusal text, remaining bigint);

-- Returns the refusal that every call for this item gets at this moment, if it is certain without a lock; NULL otherwise. The
-- row is read after the calls have arrived, so the answer was true while they waited. While a hold is due no call is hopeless,
-- because releasing the hold may return stock.
create function hotrow.hopeless(item text) returns hotrow.certain_refusal
language plpgsql as $$
declare
    at timestamptz := clock_timestamp();
    refused hotrow.certain_refusal;
begin
    select case
            when s.next_expiry <= greatest(at, s.last_at) then null
            when s.starts_at > greatest(at, s.last_at) then 'not_started'
            when s.ends_at <= greatest(at, s.last_at) then 'ended'
            when s.remaining = 0 then 'sold_out'
        end, s.remaining
    into refused
    from hotrow.sale s where s.item = hopeless.item;
    if not found then
        refused.refusal := 'unknown_item';
    end if;
    return refused;
end
$$;

-- The row of a sale, and whether another session holds its lock.
create type hotrow.locked_sale as (entry hotrow.sale, busy boolean);

-- Takes a sale's row lock. If patient is true, it waits for the lock. Otherwise busy is true if another session holds the row.
-- Calls that do not wait compete for an advisory lock (key space: the number of 'hotr', then the item's hash) before they
-- touch the hot row's page. An item that does not exist has no row to lock. Requests for it, whose answers are recorded, are
-- serialised by the advisory lock.
create function hotrow.lock_sale(item text, patient boolean, recorded boolean) returns hotrow.locked_sale
language plpgsql as $$
declare
    entry hotrow.sale;
begin
    if not patient then
        if pg_try_advisory_xact_lock(1752134770, hashtext(item)) then
            select s.* into entry from hotrow.sale s where s.item = lock_sale.item for update skip locked;
        end if;
        return row(entry, entry.item is null and exists (select from hotrow.sale s where s.item = lock_sale.item));
    end if;
    select s.* into entry from hotrow.sale s where s.item = lock_sale.item for update;
    if not found and recorded then
        perform pg_advisory_xact_lock(1752134770, hashtext(item));
        select s.* into entry from hotrow.sale s where s.item = lock_sale.item for update;
    end if;
    return row(entry, false);
end
$$;

-- Returns the units that the buyers of a batch have of its items. The first call of each buyer and item keeps the value for
-- all calls of that pair: places has that call's number.
create function hotrow.buyers_of(item text[], buyer text[], out places int[], out taken bigint[])
language plpgsql as $$
begin
    select array_agg(p.place), array_agg(p.quantity) into places, taken
    from (
        select min(u.call) over (partition by u.item collate "C", u.buyer collate "C")::int as place,
            coalesce(b.quantity, 0) as quantity
        from unnest(buyers_of.item, buyers_of.buyer) with ordinality u (item, buyer, call)
            left join lateral (
                select b.quantity from hotrow.buyer b
                where b.item = u.item collate "C" and b.buyer = u.buyer collate "C" limit 1) b on true
        order by u.call) p;
end
$$;

-- Returns IDs for this number of reservations: the ID of the request, or a new one. New IDs begin with the time, as UUIDs of
-- version 7 do, and are therefore neighbours in the index.
create function hotrow.reservation_ids(request_id uuid[], calls int, at timestamptz) returns uuid[]
language plpgsql as $$
declare
    beginning text := lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7';
begin
    if num_nonnulls(variadic request_id) = calls then
        return request_id;
    end if;
    return array(
        select coalesce(request_id[u.call], (beginning || substr(gen_random_uuid()::text, 16))::uuid)
        from generate_series(1, calls) u (call));
end
$$;

-- The answers of calls, as arrays with one element for each call. Rows would be copied each time a function hands them to
-- another.
create type hotrow.reservation_answers as (statuses text[], ids uuid[], left_over bigint[]);

-- The sales of a batch in lock order: their rows, why their calls are refused before they are judged, the time of the
-- reservations, and whether a sale has a limit for each buyer, has no hold that ends, or had a due hold. backlog is true for a
-- sale that may have due holds left.
create type hotrow.locked_sales as (
    rows hotrow.sale[], refusals text[], at timestamptz, limited boolean, quiet boolean, due boolean, backlog boolean[]);

-- Takes the row locks of these sales. request_id is NULL if no call has an ID. A sale whose calls are hopeless, and for which
-- nothing is recorded, is not locked.
create function hotrow.lock_sales(names text[], slots int[], request_id uuid[], nowait boolean[])
returns hotrow.locked_sales
language plpgsql as $$
declare
    unrecorded boolean;
    patient boolean;
    facts record;
    entry hotrow.sale;
    rows hotrow.sale[];
    verdict text;
    refusals text[];
    limited boolean := false;
    quiet boolean := false;
    due boolean := false;
    at timestamptz;
begin
    -- All locks are taken first, always in the order of the items. Two batches therefore wait for each other in one direction
    -- only.
    for i in 1 .. cardinality(names) loop
        entry := null;
        verdict := null;
        unrecorded := request_id is null or slots is not null and (
            select bool_and(u.id is null) from unnest(slots, request_id) u (slot, id) where u.slot = i);
        if unrecorded then
            facts := hotrow.hopeless(names[i]);
            verdict := facts.refusal;
            entry.remaining := facts.remaining;
        end if;
        if verdict is null then
            -- Waits for the lock unless all calls of the item ask not to wait. After a wait, all calls of the item are judged
            -- under the lock.
            patient := nowait is null or not (true = all (nowait) or slots is not null and (
                select bool_and(u.nowait) from unnest(slots, nowait) u (slot, nowait) where u.slot = i));
            facts := hotrow.lock_sale(names[i], patient, not unrecorded);
            entry := facts.entry;
            verdict := case when facts.busy then 'busy' when entry.item is null then 'unknown_item' end;
        end if;
        if verdict = 'unknown_item' then
            perform hotrow.check_name('item', names[i]);
        end if;
        refusals[i] := verdict;
        rows[i] := entry;
        at := greatest(at, entry.last_at);
        limited := limited or entry.per_buyer is not null;
    end loop;

    -- The time is read after the locks are taken, because the wait for them would outdate it. If the clock was set back, no
    -- expired hold becomes valid again.
    at := greatest(clock_timestamp(), at);
    for i in 1 .. cardinality(names) loop
        continue when refusals[i] is not null;
        entry := rows[i];
        refusals[i] := case when entry.starts_at > at then 'not_started' when entry.ends_at <= at then 'ended' end;
        quiet := quiet or entry.next_expiry is null and entry.hold is not null;
        due := due or entry.next_expiry <= at;
    end loop;
    return row(rows, refusals, at, limited, quiet, due, null::boolean[]);
end
$$;

-- Releases the due holds of these sales. A call that released all of them could be long, so their number is limited.
create function hotrow.release_holds(locked hotrow.locked_sales, slots int[], quantity bigint[])
returns hotrow.locked_sales
language plpgsql as $$
declare
    releasing bigint := 5000;
    released bigint;
    facts record;
    entry hotrow.sale;
begin
    for i in 1 .. cardinality(locked.rows) loop
        entry := locked.rows[i];
        -- Releases 1000 holds, and continues until there is enough for the calls.
        while entry.next_expiry <= locked.at loop
            locked.backlog[i] := true;
            exit when releasing = 0;
            released := least(releasing, 1000);
            facts := hotrow.release_expired(entry.item, entry.next_expiry, locked.at, released);
            entry.remaining := entry.remaining + facts.quantity;
            entry.next_expiry := facts.next_expiry;
            releasing := releasing - facts.released;
            locked.backlog[i] := entry.next_expiry <= locked.at;
            -- If fewer were released, other sessions have locked the rest. They may have confirmed them in time, or not.
            exit when facts.released < released or not locked.backlog[i] or entry.remaining >= (
                select sum(u.quantity) from unnest(quantity, slots) u (quantity, slot) where coalesce(u.slot, 1) = i);
        end loop;
        locked.rows[i] := entry;
        locked.quiet := locked.quiet or entry.next_expiry is null and entry.hold is not null;
    end loop;
    return locked;
end
$$;

-- Finds the calls whose request IDs are known, and those that repeat the ID of an earlier call of the batch. The origin of a
-- call is 0 if its answer is recorded, the number of the earlier call if it repeats that call, and NULL if it must be judged.
-- All arrays are NULL if no call has an origin. Recorded requests are looked up only if look is true.
create function hotrow.recall_reservations(
    item text[], buyer text[], quantity bigint[], request_id uuid[], look boolean,
    out origins int[], out statuses text[], out ids uuid[], out left_over bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    calls int := cardinality(item);
    known hotrow.request[];
    known_ids uuid[];
    place int;
begin
    if look then
        select array_agg(r), array_agg(r.request_id) into known, known_ids
        from hotrow.request r where r.request_id = any (recall_reservations.request_id);
    end if;
    if known_ids is null and (select count(u) = count(distinct u) from unnest(request_id) u) then
        return;
    end if;
    origins := array_fill(null::int, array[calls]);
    statuses := array_fill('reserved'::text, array[calls]);
    ids := array_fill(null::uuid, array[calls]);
    left_over := array_fill(null::bigint, array[calls]);
    for i in 1 .. calls loop
        continue when request_id[i] is null;
        place := array_position(known_ids, request_id[i]);
        if place > 0 then
            if known[place].command <> 'reserve' or known[place].item <> item[i] or known[place].buyer <> buyer[i]
                or known[place].quantity <> quantity[i]
            then
                perform hotrow.request_reused(request_id[i]);
            end if;
            origins[i] := 0;
            statuses[i] := known[place].status;
            ids[i] := case when known[place].state is not null then request_id[i] end;
            left_over[i] := known[place].remaining;
        else
            place := array_position(request_id, request_id[i]);
            if place < i then
                if item[place] <> item[i] or buyer[place] <> buyer[i] or quantity[place] <> quantity[i] then
                    perform hotrow.request_reused(request_id[i]);
                end if;
                origins[i] := place;
            end if;
        end if;
    end loop;
end
$$;

-- The state of each sale after a batch, the answers, what each buyer of the batch then has, and whether there is a reservation.
create type hotrow.judged_reservations as (
    rows hotrow.sale[], statuses text[], ids uuid[], left_over bigint[], taken bigint[], reserved boolean);

-- Judges the calls that have no origin, one after another.
create function hotrow.judge_reservations(
    rows hotrow.sale[], refusals text[], backlog boolean[], at timestamptz, slots int[], quantity bigint[],
    request_id uuid[], places int[], taken bigint[], origins int[], statuses text[], ids uuid[], left_over bigint[])
returns hotrow.judged_reservations
language plpgsql as $$
declare
    calls int := cardinality(quantity);
    slot int := 1;
    entry hotrow.sale := rows[1];
    present bigint := entry.remaining;
    drawn uuid[];
    verdict text;
begin
    statuses := coalesce(statuses, array_fill('reserved'::text, array[calls]));
    ids := coalesce(ids, array_fill(null::uuid, array[calls]));
    for i in 1 .. calls loop
        if slots[i] <> slot then
            if present < entry.remaining then
                entry.next_expiry := least(entry.next_expiry, at + entry.hold);
                entry.remaining := present;
                rows[slot] := entry;
            end if;
            slot := slots[i];
            entry := rows[slot];
            present := entry.remaining;
        end if;
        if origins[i] is not null then
            if origins[i] > 0 then
                statuses[i] := statuses[origins[i]];
                ids[i] := ids[origins[i]];
                left_over[i] := left_over[origins[i]];
            end if;
            continue;
        end if;

        -- A refusal is not final if the release of an expired hold could change it. The call is then told to retry.
        verdict := case
            when refusals[slot] is not null then refusals[slot]
            when quantity[i] > present then case when backlog[slot] then 'busy' else 'sold_out' end
            when entry.per_buyer is not null and quantity[i] > entry.per_buyer - taken[places[i]]
                then case when backlog[slot] then 'busy' else 'limit_reached' end
        end;
        if verdict is null then
            if drawn is null then
                drawn := hotrow.reservation_ids(request_id, calls, at);
            end if;
            ids[i] := drawn[i];
            present := present - quantity[i];
            if entry.per_buyer is not null then
                taken[places[i]] := taken[places[i]] + quantity[i];
            end if;
        else
            statuses[i] := verdict;
        end if;
        left_over[i] := present;
    end loop;
    if present < entry.remaining then
        entry.next_expiry := least(entry.next_expiry, at + entry.hold);
        entry.remaining := present;
        rows[slot] := entry;
    end if;
    return row(rows, statuses, ids, left_over, taken, drawn is not null);
end
$$;

-- Records the sales that had no hold that ends before these reservations, and have one now. The caller holds their row locks.
create function hotrow.remember_first_holds(before hotrow.sale[], after hotrow.sale[]) returns void
language plpgsql as $$
begin
    perform hotrow.remember_due(array_agg(after[i].item), array_agg(after[i].next_expiry))
    from generate_subscripts(after, 1) i
    where before[i].next_expiry is null and after[i].next_expiry is not null
    having count(*) > 0;
end
$$;

-- Records what the buyers of a batch have of the sales with a limit.
create function hotrow.write_buyers(
    rows hotrow.sale[], item text[], buyer text[], taken bigint[], places int[], slots int[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    insert into hotrow.buyer (item, buyer, quantity)
    select u.item, u.buyer, u.quantity
    from unnest(item, buyer, taken, places, slots) with ordinality u (item, buyer, quantity, place, slot, call)
    where u.place = u.call and u.quantity > 0 and (rows[coalesce(u.slot, 1)]).per_buyer is not null
    order by u.item collate "C", u.buyer collate "C"
    on conflict (buyer, item) do update set quantity = excluded.quantity
    where buyer.quantity <> excluded.quantity;
end
$$;

-- Judges reservations one after another and writes their effects: one update of each sale, one insert into each table. It
-- handles every batch; hotrow.reserve_plainly saves most of this work for the usual batch.
create function hotrow.apply_reservations(
    item text[], buyer text[], quantity bigint[], request_id uuid[], nowait boolean[], look boolean)
returns hotrow.reservation_answers
language plpgsql as $$
#variable_conflict use_column
declare
    -- The items of this batch in lock order, and each call's place among them; NULL if there is only one item.
    names text[] := item[1:1];
    slots int[];
    locked hotrow.locked_sales;
    -- One element for each call; NULL if no call has an origin.
    origins int[];
    statuses text[];
    ids uuid[];
    left_over bigint[];
    -- The buyers of this batch and the pieces that each of them has, if a sale has a limit.
    places int[];
    taken bigint[];
    judged hotrow.judged_reservations;
    -- The number of calls that have a request ID and no recorded answer.
    fresh bigint := num_nonnulls(variadic request_id);
begin
    if cardinality(item) > 1 and not item[1] = all (item) then
        select o.names, o.slots into names, slots from hotrow.lock_order(item) o;
    end if;
    locked := hotrow.lock_sales(names, slots, case when fresh > 0 then request_id end, nowait);
    if locked.due then
        locked := hotrow.release_holds(locked, slots, quantity);
    end if;
    -- Looked up by statements that start after the locks were taken. Their snapshots are newer than all writes of the last
    -- holder of a lock. Nothing is recorded for a call that is told to retry, so no index would report that its ID is known.
    if fresh > 0 then
        look := look or 'busy' = any (locked.refusals) or true = any (locked.backlog);
        if look or fresh > 1 then
            select r.* into origins, statuses, ids, left_over
            from hotrow.recall_reservations(item, buyer, quantity, request_id, look) r;
            fresh := fresh - coalesce(num_nonnulls(variadic origins), 0);
        end if;
    end if;
    if locked.limited then
        select b.* into places, taken from hotrow.buyers_of(item, buyer) b;
    end if;
    judged := hotrow.judge_reservations(locked.rows, locked.refusals, locked.backlog, locked.at, slots, quantity,
        request_id, places, taken, origins, statuses, ids, left_over);

    if locked.due or judged.reserved then
        update hotrow.sale s set remaining = r.remaining, next_expiry = r.next_expiry, last_at = locked.at
        from unnest(judged.rows) r cross join lateral hotrow.sale_row(r.item) k
        where s.ctid = k.tid and (s.remaining, s.next_expiry) is distinct from (r.remaining, r.next_expiry);
    end if;
    if judged.reserved and locked.quiet then
        perform hotrow.remember_first_holds(locked.rows, judged.rows);
    end if;
    if judged.reserved and locked.limited then
        perform hotrow.write_buyers(judged.rows, item, buyer, judged.taken, places, slots);
    end if;
    -- Reservations, and refusals of requests that have an ID.
    if judged.reserved or fresh > 0 then
        insert into hotrow.request
            (request_id, command, status, remaining, at, item, buyer, quantity, state, expires_at)
        select coalesce(u.reserved, u.requested), 'reserve', u.status, u.remaining, locked.at, u.item, u.buyer,
            u.quantity, case when u.reserved is not null then 'held' end,
            case when u.reserved is not null then locked.at + (judged.rows[coalesce(u.slot, 1)]).hold end
        from unnest(request_id, judged.ids, item, buyer, quantity, origins, judged.statuses, judged.left_over, slots)
            u (requested, reserved, item, buyer, quantity, origin, status, remaining, slot)
        where u.origin is null and u.status <> 'busy' and coalesce(u.reserved, u.requested) is not null order by 1;
    end if;
    return row(judged.statuses, judged.ids, judged.left_over);
end
$$;

-- Handles the usual batch at half the cost, without judging its calls one by one. The usual batch is for one open item without
-- a due hold, with enough stock for all calls, and each buyer is within the limit and only once in the batch. Every call gets
-- its reservation, as it would from hotrow.apply_reservations. For any other batch this function raises an error, and the
-- caller undoes it and judges the batch there. unique_violation: a request ID is known, or occurs twice in the batch;
-- cardinality_violation: a buyer occurs twice; HR002: everything else.
create function hotrow.reserve_plainly(item text, buyer text[], quantity bigint[], request_id uuid[])
returns hotrow.reservation_answers
language plpgsql as $$
#variable_conflict use_column
declare
    calls int := cardinality(buyer);
    locked record;
    entry hotrow.sale;
    at timestamptz;
    present bigint;
    left_over bigint[] := quantity;
    ids uuid[];
    within bigint;
begin
    locked := hotrow.lock_sale(item, true, false);
    entry := locked.entry;
    at := greatest(clock_timestamp(), entry.last_at);
    if entry.item is null or entry.next_expiry <= at or entry.starts_at > at or entry.ends_at <= at then
        raise exception using errcode = 'HR002';
    end if;
    present := entry.remaining;
    for i in 1 .. calls loop
        if quantity[i] > present then
            raise exception using errcode = 'HR002';
        end if;
        present := present - quantity[i];
        left_over[i] := present;
    end loop;
    if entry.per_buyer is not null then
        insert into hotrow.buyer (item, buyer, quantity)
        select entry.item, u.buyer, u.quantity from unnest(buyer, quantity) u (buyer, quantity)
        where u.quantity <= entry.per_buyer
        on conflict (buyer, item) do update set quantity = buyer.quantity + excluded.quantity
        where excluded.quantity <= entry.per_buyer - buyer.quantity;
        get diagnostics within = row_count;
        if within < calls then
            raise exception using errcode = 'HR002';
        end if;
    end if;
    ids := hotrow.reservation_ids(request_id, calls, at);
    insert into hotrow.request (request_id, command, status, remaining, at, item, buyer, quantity, state, expires_at)
    select u.id, 'reserve', 'reserved', u.remaining, at, entry.item, u.buyer, u.quantity, 'held', at + entry.hold
    from unnest(ids, buyer, quantity, left_over) u (id, buyer, quantity, remaining) order by u.id;
    update hotrow.sale s
    set remaining = present, next_expiry = least(entry.next_expiry, at + entry.hold), last_at = at
    where s.item = reserve_plainly.item;
    if entry.next_expiry is null and entry.hold is not null then
        perform hotrow.remember_due(array[item], array[at + entry.hold]);
    end if;
    return row(array_fill('reserved'::text, array[calls]), ids, left_over);
end
$$;

-- The answers of reserve_plainly, or otherwise of apply_reservations. Nearly all IDs are new, so the first attempts do not look
-- for known ones. If an ID is known, the unique index reports it when the answers are recorded, everything is undone, and the
-- last attempt looks.
create function hotrow.answer_reservations(
    item text[], buyer text[], quantity bigint[], request_id uuid[], nowait boolean[])
returns hotrow.reservation_answers
language plpgsql as $$
declare
    recorded boolean := coalesce(num_nonnulls(variadic request_id) > 0, false);
    first int := 1;
    violated text;
begin
    -- A hopeless call takes no lock if nothing is recorded for it.
    if item[1] = all (item) and (nowait is null or false = all (nowait))
        and (recorded or (hotrow.hopeless(item[1])).refusal is null)
    then
        begin
            return hotrow.reserve_plainly(item[1], buyer, quantity, request_id);
        exception
            when sqlstate 'HR002' or cardinality_violation then null;
            when unique_violation then first := 2;
        end;
    end if;
    if recorded then
        for attempt in first .. 2 loop
            begin
                return hotrow.apply_reservations(item, buyer, quantity, request_id, nowait, attempt = 2);
            exception when unique_violation then
                get stacked diagnostics violated = constraint_name;
                perform hotrow.check_retry(violated, attempt);
            end;
        end loop;
    end if;
    return hotrow.apply_reservations(item, buyer, quantity, null, nowait, false);
end
$$;

-- Refuses arguments that are wrong in every state of the rows, before the call waits for a lock.
create function hotrow.check_reservations(
    item text[], buyer text[], quantity bigint[], request_id uuid[], nowait boolean[]) returns void
language plpgsql as $$
begin
    perform hotrow.check_batch(cardinality(item), array_upper(item, 1), cardinality(buyer), array_upper(buyer, 1),
        cardinality(quantity), array_upper(quantity, 1), cardinality(request_id), array_upper(request_id, 1),
        cardinality(nowait), array_upper(nowait, 1));
    if array_position(item, null) > 0 then
        perform hotrow.null_argument('item');
    elsif buyer is null or array_position(buyer, null) > 0 then
        perform hotrow.null_argument('buyer');
    elsif array_position(quantity, null) > 0 then
        perform hotrow.null_argument('quantity');
    elsif array_position(nowait, null) > 0 then
        perform hotrow.null_argument('nowait');
    elsif 0 >= any (quantity) then
        perform hotrow.bad_argument('quantity is 0 or less', 'Reserve 1 or more.');
    end if;
    -- The names are checked one by one only if the batch may hold a name that is too long.
    if '' = any (buyer) or octet_length(array_to_string(buyer, '')) > 500 then
        perform hotrow.check_name('buyer', b.name)
        from unnest(buyer) b (name) where b.name = '' or octet_length(b.name) > 500;
    end if;
end
$$;

create function hotrow.reserve(
    item text, buyer text, quantity bigint default 1, request_id uuid default null, nowait boolean default false,
    out status text, out reservation_id uuid, out remaining bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    items text[] := array[item];
    buyers text[] := array[buyer];
    quantities bigint[] := array[quantity];
    answers hotrow.reservation_answers;
begin
    perform hotrow.check_reservations(items, buyers, quantities, null, array[nowait]);
    answers := hotrow.answer_reservations(items, buyers, quantities, array[request_id], array[nowait]);
    status := answers.statuses[1];
    reservation_id := answers.ids[1];
    remaining := answers.left_over[1];
end
$$;

create function hotrow.reserve_batch(
    item text[], buyer text[], quantity bigint[] default null, request_id uuid[] default null,
    nowait boolean[] default null)
returns table (status text, reservation_id uuid, remaining bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    answers hotrow.reservation_answers;
begin
    perform hotrow.check_reservations(item, buyer, quantity, request_id, nowait);
    if cardinality(item) > 0 then
        answers := hotrow.answer_reservations(
            item, buyer, coalesce(quantity, array_fill(1::bigint, array[cardinality(item)])), request_id, nowait);
        return query select a.* from unnest(answers.statuses, answers.ids, answers.left_over) a;
    end if;
end
$$;
