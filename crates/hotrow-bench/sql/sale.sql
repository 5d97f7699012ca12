-- A flash sale as applications implement it, in four ways, each in one round trip. All do the same work as Hotrow: a request
-- ID counts once, a buyer has a limit, a reservation is a row. It inserts no rows of a run.
create schema hotrow_bench;

create table hotrow_bench.item (
    item      text   primary key,
    stock     bigint not null,
    remaining bigint not null check (remaining >= 0),
    per_buyer bigint not null
) with (fillfactor = 50);

create table hotrow_bench.buyer (
    item     text   not null,
    buyer    text   not null,
    quantity bigint not null,
    primary key (item, buyer)
) with (fillfactor = 80);

create table hotrow_bench.reservation (
    reservation_id uuid        primary key default gen_random_uuid(),
    request_id     uuid        not null unique,
    item           text        not null,
    buyer          text        not null,
    quantity       bigint      not null,
    at             timestamptz not null default clock_timestamp()
);

-- The pool for the technique with one row per unit.
create table hotrow_bench.unit (
    unit bigint primary key
);

-- The rows that all four write besides the stock. False if the request is a repetition.
create function hotrow_bench.note(item text, buyer text, request_id uuid) returns boolean
language plpgsql as $$
#variable_conflict use_column
begin
    insert into hotrow_bench.reservation (request_id, item, buyer, quantity)
    values (note.request_id, note.item, note.buyer, 1) on conflict (request_id) do nothing;
    if not found then
        return false;
    end if;
    insert into hotrow_bench.buyer as b (item, buyer, quantity) values (note.item, note.buyer, 1)
    on conflict (item, buyer) do update set quantity = b.quantity + 1
    where b.quantity < (select i.per_buyer from hotrow_bench.item i where i.item = b.item);
    if not found then
        raise exception 'limit reached';
    end if;
    return true;
end
$$;

-- Takes one unit from the hot row. Other clients wait until the commit is on disk.
create function hotrow_bench.take_one(item text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    update hotrow_bench.item i set remaining = remaining - 1 where i.item = take_one.item and remaining >= 1;
    if not found then
        raise exception 'sold out';
    end if;
end
$$;

-- The conditional UPDATE. It comes last, so that the row is locked for the shortest possible time.
create function hotrow_bench.reserve_update(buyer text, request_id uuid) returns text
language plpgsql as $$
begin
    if hotrow_bench.note('phone', buyer, request_id) then
        perform hotrow_bench.take_one('phone');
    end if;
    return 'reserved';
end
$$;

-- `for update nowait`. It comes first, so that a rejected client has done no other work.
create function hotrow_bench.reserve_nowait(buyer text, request_id uuid) returns text
language plpgsql as $$
begin
    begin
        perform from hotrow_bench.item where item = 'phone' for update nowait;
    exception
        when lock_not_available then
            return 'busy';
    end;
    if hotrow_bench.note('phone', buyer, request_id) then
        perform hotrow_bench.take_one('phone');
    end if;
    return 'reserved';
end
$$;

-- `pg_try_advisory_xact_lock`. A client that does not get the lock is rejected without touching the row.
create function hotrow_bench.reserve_try_lock(buyer text, request_id uuid) returns text
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock(1) then
        return 'busy';
    end if;
    if hotrow_bench.note('phone', buyer, request_id) then
        perform hotrow_bench.take_one('phone');
    end if;
    return 'reserved';
end
$$;

-- One row per unit: each client takes the first row that no other client has locked. There is no hot row, but a hot end of
-- an index.
create function hotrow_bench.reserve_unit(buyer text, request_id uuid) returns text
language plpgsql as $$
begin
    if hotrow_bench.note('pool', buyer, request_id) then
        delete from hotrow_bench.unit
        where unit = (select unit from hotrow_bench.unit order by unit limit 1 for update skip locked);
        if not found then
            raise exception 'sold out';
        end if;
    end if;
    return 'reserved';
end
$$;
