-- Reserving several items at once, all or none. hotrow.apply_reservations judges them.

-- Makes these reservations, or none of them. Then refused_item is the first item that was refused.
create function hotrow.reserve_each(
    items text[], quantities bigint[], buyers text[], out status text, out reservation_ids uuid[], out refused_item text)
language plpgsql as $$
declare
    answers hotrow.reservation_answers;
begin
    status := 'reserved';
    answers := hotrow.apply_reservations(items, buyers, quantities, null, null, false);
    reservation_ids := answers.ids;
    for i in 1 .. cardinality(items) loop
        if answers.statuses[i] <> 'reserved' then
            status := answers.statuses[i];
            reservation_ids := null;
            refused_item := items[i];
            -- Rolls the reservations back. The answer stays as it is.
            raise exception using errcode = 'HR001';
        end if;
    end loop;
exception when sqlstate 'HR001' then
    null;
end
$$;

create function hotrow.reserve_all(
    items text[], quantities bigint[], buyer text, request_id uuid default null,
    out status text, out reservation_ids uuid[], out refused_item text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(items);
    releasing bigint := 5000;
    buyers text[];
    known hotrow.request;
    answers record;
    arguments text := array[quantities::text, items::text, buyer]::text;
begin
    if items is null then
        perform hotrow.null_argument('items');
    elsif quantities is null then
        perform hotrow.null_argument('quantities');
    elsif calls = 0 then
        perform hotrow.bad_argument('items is empty', 'Name at least one item.');
    end if;
    buyers := array_fill(buyer, array[calls]);
    perform hotrow.check_reservations(items, buyers, quantities, null, null);

    -- Locks are taken in the order of the items, as in every batch. They are held until the end, even if the reservations
    -- below are rolled back.
    for i in 1 .. calls loop
        perform hotrow.check_name('item', items[i]);
    end loop;
    perform hotrow.lock_sale(u.item, true, request_id is not null)
    from (select distinct i.item collate "C" as item from unnest(items) i (item) order by 1) u;

    if request_id is not null then
        known := hotrow.recorded(request_id, 'reserve_all', arguments);
        if known.request_id is not null then
            status := known.status;
            reservation_ids := known.reservation_ids;
            refused_item := known.refused_item;
            return;
        end if;
    end if;

    -- Runs before the block of the reservations, because released holds stay released if the reservations are rolled back.
    for i in 1 .. calls loop
        releasing := releasing - hotrow.release_due(items[i], least(releasing, 1000));
    end loop;
    answers := hotrow.reserve_each(items, quantities, buyers);
    status := answers.status;
    reservation_ids := answers.reservation_ids;
    refused_item := answers.refused_item;
    if request_id is not null and status <> 'busy' then
        begin
            insert into hotrow.request (request_id, command, arguments, status, reservation_ids, refused_item, at)
            values (reserve_all.request_id, 'reserve_all', arguments, reserve_all.status, reserve_all.reservation_ids,
                reserve_all.refused_item, clock_timestamp());
        exception when unique_violation then
            perform hotrow.request_taken();
        end;
    end if;
end
$$;
