-- The end of a reservation: confirmed, cancelled or expired; and longer holds. Reservations are made in 0007_reserve.sql.

-- Locks the reservations of a batch in the order of their IDs, and returns the time after that. If the sale of a reservation
-- has already seen a later time (the clock was set back since), that later time counts.
create function hotrow.lock_reservations(ids uuid[], out rows hotrow.reservation[], out at timestamptz)
language plpgsql as $$
begin
    select array_agg(l.r order by (l.r).reservation_id), max(l.last_at) into rows, at
    from (
        select {{one}}r{{many}}row(r.*)::hotrow.reservation as r{{end}}, s.last_at from {{one}}hotrow.reservation{{many}}{{reservations}}{{end}} r
            left join lateral (select s.last_at from hotrow.sale s where s.item = r.item limit 1) s on true
        where r.reservation_id = any (ids) order by r.reservation_id for update of r) l;
    at := greatest(clock_timestamp(), at);
end
$$;

-- The refusal for a call that wants to change a hold; NULL if the hold is valid. Updates by ID use this too: for a plain
-- condition on the status, a planner that takes the table for small would walk through the index of all holds.
create function hotrow.not_held(entry hotrow.reservation, at timestamptz) returns text
language sql immutable as $$
    select case when entry.reservation_id is null then 'unknown_reservation' when entry.status <> 'held' then entry.status
        when entry.expires_at <= at then 'expired' end
$$;

-- One answer for each call, in the order of the calls: done, or the refusal.
create function hotrow.outcomes(ids uuid[], rows hotrow.reservation[], at timestamptz, done text) returns setof text
language sql immutable as $$
    select coalesce(hotrow.not_held(l, at), done)
    from unnest(ids) with ordinality u (id, call) left join unnest(rows) l on l.reservation_id = u.id
    order by u.call
$$;

create function hotrow.confirm_batch(reservation_id uuid[]) returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(reservation_id);
    locked record;
begin
    perform hotrow.check_batch(calls, array_upper(reservation_id, 1));
    if array_position(reservation_id, null) > 0 then
        perform hotrow.null_argument('reservation_id');
    end if;
    locked := hotrow.lock_reservations(reservation_id);
    update hotrow.{{one}}reservation r set status{{many}}request r set state{{end}} = 'confirmed'
    where {{one}}r.reservation_id{{many}}r.state is not null and r.request_id{{end}} = any (confirm_batch.reservation_id) and hotrow.not_held({{one}}r{{many}}row(r.request_id, r.item, r.buyer, r.quantity, r.state, r.at, r.expires_at)::hotrow.reservation{{end}}, locked.at) is null;
    return query select hotrow.outcomes(reservation_id, locked.rows, locked.at, 'confirmed');
end
$$;

create function hotrow.confirm(reservation_id uuid, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
    select b.status into confirm.status from hotrow.confirm_batch(array[confirm.reservation_id]) b;
end
$$;

-- Returns the held stock and therefore needs the sale's row. Every transaction locks sales before reservations.
create function hotrow.cancel_batch(reservation_id uuid[]) returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(reservation_id);
    locked record;
begin
    perform hotrow.check_batch(calls, array_upper(reservation_id, 1));
    if array_position(reservation_id, null) > 0 then
        perform hotrow.null_argument('reservation_id');
    end if;
    -- A reservation never changes its item, so the item can be read before anything is locked.
    perform hotrow.lock_sale(i.item, true, false)
    from (select distinct r.item from {{one}}hotrow.reservation{{many}}{{reservations}}{{end}} r
        where r.reservation_id = any (cancel_batch.reservation_id) and hotrow.not_held({{one}}r{{many}}row(r.*)::hotrow.reservation{{end}}, '-infinity') is null
        order by r.item) i;
    locked := hotrow.lock_reservations(reservation_id);
    with cancelled as (
        update hotrow.{{one}}reservation r set status{{many}}request r set state{{end}} = 'cancelled'
        where {{one}}r.reservation_id{{many}}r.state is not null and r.request_id{{end}} = any (cancel_batch.reservation_id) and hotrow.not_held({{one}}r{{many}}row(r.request_id, r.item, r.buyer, r.quantity, r.state, r.at, r.expires_at)::hotrow.reservation{{end}}, locked.at) is null
        returning r.item, r.buyer, r.quantity
    ), buyers as (
        update hotrow.buyer b set quantity = b.quantity - g.quantity
        from (select c.item, c.buyer, sum(c.quantity) as quantity from cancelled c group by c.item, c.buyer) g
            cross join lateral hotrow.buyer_row(g.item, g.buyer) k
        where b.ctid = k.tid
    )
    update hotrow.sale s set remaining = s.remaining + g.quantity, last_at = greatest(s.last_at, locked.at)
    from (select c.item, sum(c.quantity) as quantity from cancelled c group by c.item) g
        cross join lateral hotrow.sale_row(g.item) k
    where s.ctid = k.tid;
    return query select hotrow.outcomes(reservation_id, locked.rows, locked.at, 'cancelled');
end
$$;

create function hotrow.cancel(reservation_id uuid, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
    select b.status into cancel.status from hotrow.cancel_batch(array[cancel.reservation_id]) b;
end
$$;

-- If a hold becomes longer, the sale's next_expiry is still a lower bound, so the sale's row is not needed.
create function hotrow.extend_batch(reservation_id uuid[], hold interval[])
returns table (status text, expires_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(reservation_id);
    locked record;
    entry hotrow.reservation;
begin
    perform hotrow.check_batch(
        calls, array_upper(reservation_id, 1), coalesce(cardinality(hold), 0), array_upper(hold, 1));
    if array_position(reservation_id, null) > 0 then
        perform hotrow.null_argument('reservation_id');
    elsif array_position(hold, null) > 0 then
        perform hotrow.null_argument('hold');
    elsif interval '0' >= any (hold) or interval '3660 days' < any (hold) then
        perform hotrow.bad_argument('hold is 0 or less, or more than 3660 days', 'Extend by more than 0 and at most 3660 days.');
    end if;
    locked := hotrow.lock_reservations(reservation_id);
    for i in 1 .. calls loop
        select l.* into entry from unnest(locked.rows) l where l.reservation_id = extend_batch.reservation_id[i];
        status := hotrow.not_held(entry, locked.at);
        expires_at := null;
        if status is null then
            status := 'extended';
            -- Read from the row again: an earlier call of this batch can have extended it.
            update hotrow.{{one}}reservation{{many}}request{{end}} r set expires_at = greatest(r.expires_at, locked.at + hold[i])
            where {{one}}r.reservation_id{{many}}r.state is not null and r.request_id{{end}} = entry.reservation_id and r.expires_at is not null
            returning r.expires_at into extend_batch.expires_at;
        end if;
        return next;
    end loop;
end
$$;

create function hotrow.extend(reservation_id uuid, hold interval, out status text, out expires_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
    select b.status, b.expires_at into extend.status, extend.expires_at
    from hotrow.extend_batch(array[extend.reservation_id], array[hold]) b;
end
$$;

-- Releases expired holds: `most` holds at most, of as many sales at most. This is accounting only: a call that needs the stock
-- releases the holds itself.
create function hotrow.expire_holds(most int default 1000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    due record;
    entry hotrow.sale;
    expired bigint := 0;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most < 0 then
        perform hotrow.bad_argument(format('most is %s', most), 'End 0 or more reservations at a time.');
    end if;
    for due in
        select d.item from hotrow.sale_due d where d.look_at <= clock_timestamp() order by d.look_at, d.item limit most
    loop
        exit when expired >= most;
        -- A sale with a locked row is skipped: the holder of the lock releases the holds that it needs.
        select s.* into entry from hotrow.sale s where s.item = due.item for update skip locked;
        continue when not found;
        expired := expired + hotrow.release_due(due.item, most - expired);
        select s.* into entry from hotrow.sale s where s.item = due.item;
        if entry.next_expiry is null then
            delete from hotrow.sale_due d where d.item = due.item;
        else
            update hotrow.sale_due d set look_at = entry.next_expiry where d.item = due.item and d.look_at < entry.next_expiry;
        end if;
    end loop;
    return expired;
end
$$;
