-- Sales: the stock, its holds, restocking and reading. Reservations are judged in 0007_reserve.sql.

create table hotrow.sale (
    item text collate "C" primary key,
    -- The number of all pieces that were ever put up for sale.
    stock bigint not null,
    -- The stock that can be sold. Confirming does not change it, so confirmations do not queue at the hot row.
    remaining bigint not null check (remaining between 0 and stock),
    per_buyer bigint,
    starts_at timestamptz,
    ends_at timestamptz,
    hold interval,
    -- No held reservation expires before this time; NULL if none ever does. No call needs to look for expired holds before it.
    next_expiry timestamptz,
    last_at timestamptz not null default '-infinity'
) with (fillfactor = 50); -- every change is of unindexed columns and stays in its page as long as there is room

-- The sales with holds that may be due, by time, which is no later than the sale's next_expiry. A row is written when a sale
-- gets its first hold, under the sale's row lock, and hotrow.expire_holds moves it on. An index on next_expiry itself would
-- turn each change of it into a new index entry of the hot row.
create table hotrow.sale_due (
    item text collate "C" primary key,
    look_at timestamptz not null
);
create index sale_due_look_at on hotrow.sale_due (look_at, item);

create view hotrow.reservation as
    select q.request_id as reservation_id, q.item, q.buyer, q.quantity, q.state as status, q.at as reserved_at, q.expires_at
    from hotrow.request q where q.state is not null;

-- The pieces that each buyer of a sale with a limit holds or has confirmed. A page has few rows: each change leaves a dead
-- version, and the next access to the page removes it at a cost that grows with the number of rows in the page.
create table hotrow.buyer (
    item text collate "C",
    buyer text collate "C",
    quantity bigint not null check (quantity >= 0),
    primary key (buyer, item)
) with (fillfactor = 20);

-- The location of a row that will be changed. The row is looked up by itself: if the planner estimated a small table, a join
-- by the key would read all of it. The server inlines these functions.
create function hotrow.sale_row(item text) returns table (tid tid) language sql stable as $$
    select s.ctid from hotrow.sale s where s.item = sale_row.item limit 1
$$;

create function hotrow.buyer_row(item text, buyer text) returns table (tid tid) language sql stable as $$
    select b.ctid from hotrow.buyer b where b.item = buyer_row.item and b.buyer = buyer_row.buyer limit 1
$$;

create function hotrow.create_sale(
    item text, stock bigint, per_buyer bigint default null, starts_at timestamptz default null,
    ends_at timestamptz default null, hold interval default null, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    retention interval;
begin
    perform hotrow.check_name('item', item);
    select s.request_retention into retention from hotrow.setting s where s.one;
    if stock is null then
        perform hotrow.null_argument('stock');
    elsif stock < 0 then
        perform hotrow.bad_argument(format('stock is %s', stock), 'Let stock be 0 or more.');
    elsif per_buyer <= 0 then
        perform hotrow.bad_argument(
            format('per_buyer is %s', per_buyer), 'Let a buyer have 1 or more, or leave per_buyer out.');
    elsif ends_at <= starts_at then
        perform hotrow.bad_argument('ends_at is not after starts_at', 'Let a sale end after it starts, or leave one out.');
    elsif hold <= interval '0' then
        perform hotrow.bad_argument(format('hold is %s', hold), 'Use a hold longer than 0, or leave it out for no limit.');
    elsif hold >= retention then
        perform hotrow.bad_argument(
            format('hold is %s and request ids are kept for %s only', hold, retention),
            'Choose a shorter hold, or raise request_retention in {{pack}}.setting.');
    end if;
    insert into hotrow.sale (item, stock, remaining, per_buyer, starts_at, ends_at, hold)
    values (create_sale.item, create_sale.stock, create_sale.stock, create_sale.per_buyer, create_sale.starts_at,
        create_sale.ends_at, create_sale.hold)
    on conflict do nothing;
    if found then
        status := 'created';
        return;
    end if;
    select case when (s.stock, s.per_buyer, s.starts_at, s.ends_at, s.hold) is not distinct from
            (create_sale.stock, create_sale.per_buyer, create_sale.starts_at, create_sale.ends_at, create_sale.hold)
        then 'exists' else 'differs' end
    into create_sale.status from hotrow.sale s where s.item = create_sale.item;
end
$$;

-- Records that these sales have holds now. The caller holds their row locks.
create function hotrow.remember_due(items text[], ends timestamptz[]) returns void
language plpgsql as $$
begin
    insert into hotrow.sale_due (item, look_at)
    select u.item, u.look_at from unnest(items, ends) u (item, look_at) order by u.item collate "C"
    on conflict (item) do update set look_at = excluded.look_at where sale_due.look_at > excluded.look_at;
end
$$;

-- Returns the pieces of expired reservations to stock, for `most` reservations at most. The caller holds the sale's row lock.
-- A reservation that another session is confirming at this moment is skipped: it stays held, and next_expiry still covers it.
-- None expires before `since`, the sale's next_expiry: the index entries before it belong to reservations that are no longer
-- held.
create function hotrow.release_expired(
    item text, since timestamptz, at timestamptz, most bigint,
    out released bigint, out quantity bigint, out next_expiry timestamptz)
language plpgsql as $$
#variable_conflict use_column
begin
    with due as (
        select r.reservation_id from {{one}}hotrow.reservation{{many}}{{reservations}}{{end}} r
        where r.item = release_expired.item and r.status = 'held' and r.expires_at >= since and r.expires_at <= at
        order by r.expires_at limit most for update skip locked
    ), expired as (
        update hotrow.{{one}}reservation r set status{{many}}request r set state{{end}} = 'expired'
        where {{one}}r.reservation_id{{many}}r.state is not null and r.request_id{{end}} = any (array(select d.reservation_id from due d))
        returning r.buyer, r.quantity
    ), given_back as (
        update hotrow.buyer b set quantity = b.quantity - e.quantity
        from (select x.buyer, sum(x.quantity) as quantity from expired x group by x.buyer) e
            cross join lateral hotrow.buyer_row(release_expired.item, e.buyer) k
        where b.ctid = k.tid
    )
    select count(*), coalesce(sum(e.quantity), 0)::bigint into release_expired.released, release_expired.quantity
    from expired e;
    select r.expires_at into release_expired.next_expiry from {{one}}hotrow.reservation{{many}}{{reservations}}{{end}} r
    where r.item = release_expired.item and r.status = 'held' and r.expires_at >= since
    order by r.item, r.expires_at limit 1;
end
$$;

-- Releases expired holds and updates the sale's row, whose lock the caller holds. Returns how many holds were released.
create function hotrow.release_due(item text, most bigint) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    entry hotrow.sale;
    at timestamptz;
    freed record;
    released bigint := 0;
begin
    select s.* into entry from hotrow.sale s where s.item = release_due.item;
    at := greatest(clock_timestamp(), entry.last_at);
    if entry.next_expiry <= at and most > 0 then
        freed := hotrow.release_expired(item, entry.next_expiry, at, most);
        update hotrow.sale s set remaining = s.remaining + freed.quantity, next_expiry = freed.next_expiry, last_at = at
        where s.item = release_due.item;
        released := freed.released;
    end if;
    return released;
end
$$;

create function hotrow.restock(
    item text, quantity bigint, request_id uuid default null, out status text, out remaining bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    entry hotrow.sale;
    at timestamptz;
    known hotrow.request;
    released record;
    arguments text := quantity || ' ' || item;
begin
    perform hotrow.check_name('item', item);
    if quantity is null then
        perform hotrow.null_argument('quantity');
    elsif quantity <= 0 then
        perform hotrow.bad_argument(format('quantity is %s', quantity), 'Restock 1 or more.');
    end if;
    select s.* into entry from hotrow.sale s where s.item = restock.item for update;
    at := greatest(clock_timestamp(), entry.last_at);
    if request_id is not null then
        known := hotrow.recorded(request_id, 'restock', arguments);
        if known.request_id is not null then
            status := known.status;
            remaining := known.remaining;
            return;
        end if;
    end if;
    if entry.item is null then
        status := 'unknown_item';
    else
        if entry.next_expiry <= at then
            released := hotrow.release_expired(item, entry.next_expiry, at, 1000);
            entry.remaining := entry.remaining + released.quantity;
            entry.next_expiry := released.next_expiry;
        end if;
        if quantity > 9223372036854775807 - entry.stock then
            perform hotrow.bad_argument(
                format('stock would be over %s', 9223372036854775807), 'Restock less.');
        end if;
        status := 'restocked';
        remaining := entry.remaining + quantity;
        update hotrow.sale s
        set stock = s.stock + restock.quantity, remaining = restock.remaining, next_expiry = entry.next_expiry,
            last_at = at
        where s.item = restock.item;
    end if;
    if request_id is not null then
        begin
            insert into hotrow.request (request_id, command, arguments, status, remaining, at)
            values (restock.request_id, 'restock', arguments, restock.status, restock.remaining, at);
        exception when unique_violation then
            perform hotrow.request_taken();
        end;
    end if;
end
$$;

-- Stable: both statements see the caller's snapshot, so the sums are consistent. The function locks and releases nothing:
-- expired holds count as remaining stock whether or not they have been released.
create type hotrow.sale_state as (item text, remaining bigint, held bigint, sold bigint, per_buyer bigint,
    starts_at timestamptz, ends_at timestamptz, hold interval);
create function hotrow.sale(item text) returns setof hotrow.sale_state
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    perform hotrow.check_name('item', $1);
    return query
        select s.item, s.remaining + h.expired, h.live, s.stock - s.remaining - h.expired - h.live, s.per_buyer,
            s.starts_at, s.ends_at, s.hold
        from hotrow.sale s
            cross join lateral (
                select coalesce(sum(r.quantity) filter (where r.expires_at <= clock.at), 0)::bigint as expired,
                    coalesce(sum(r.quantity) filter (where r.expires_at > clock.at or r.expires_at is null), 0)::bigint
                        as live
                from (select greatest(clock_timestamp(), s.last_at) as at) clock
                    left join {{one}}hotrow.reservation{{many}}{{reservations}}{{end}} r on r.item = s.item and r.status = 'held') h
        where s.item = $1;
end
$$;
