-- The pack's maintenance as one call, which the gateway makes. The files of the areas define the pieces.

-- The step that the present round has reached, in the newest row. A call adds a row and locks none. With a single row, a
-- transaction left open after its call would keep that row locked and block the maintenance of all other sessions.
create table hotrow.maintenance (
    number bigint generated always as identity primary key,
    step int not null,
    -- A piece of this round had more work than one call does.
    unfinished boolean not null
);

-- Does the next piece of the maintenance and returns whether to call again at once; false ends a round. Each transaction does one
-- piece, so it does not hold the locks of one piece during another. All pieces take turns, so a piece that never ends does not
-- starve the others. Several sessions can call it at once, because each piece skips rows that another session has locked. A
-- piece that fails is left to the next round.
create function hotrow.keep() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
set lock_timeout = '1s' as $$
#variable_conflict use_column
declare
    present hotrow.maintenance;
    piece int;
    more boolean := false;
begin
    select u.* into present from hotrow.maintenance u order by u.number desc limit 1;
    piece := coalesce(present.step, 0);
    begin
        case piece
            when 0 then more := hotrow.expire_holds(1000) = 1000;
            when 1 then more := hotrow.fan_out(1000) > 0;
            when 2 then more := hotrow.forget_requests(1000) = 1000{{many}} or (select sum(s::bigint) from hotrow.on_shards('forget_requests(1000)') s) >= 1000{{end}};
            when 3 then
                -- The orders of dropped queues are deleted together with their parts of the ring. Reading the parts locks them
                -- until the transaction ends, so they are read only if there is no queue.
                if exists (select from hotrow.queue) then
                    perform hotrow.rotate_queues();
                elsif exists (select from hotrow.queue_order) or exists (select from hotrow.processed_order) then
                    perform hotrow.rotate_queues();
                end if;
            when 4 then perform {{one}}hotrow.rotate_history(){{many}}hotrow.on_shards('rotate_history()'), hotrow.on_shards('rotate_queues()'){{end}};
            -- The small number keeps the load negligible. In 90 days it still covers 25 million inboxes.
            else perform hotrow.trim_feeds(50);
        end case;
    exception
        when lock_not_available then
            null;
        when others then
            raise warning using message = format('hotrow.keep, step %s: %s', piece, sqlerrm),
                hint = 'It is tried again in the next round.';
    end;
    more := more or coalesce(present.unfinished, false);
    insert into hotrow.maintenance (step, unfinished)
    values (case when piece < 5 then piece + 1 else 0 end, piece < 5 and more);
    delete from hotrow.maintenance u where u.number = any (array(
        select o.number from hotrow.maintenance o where o.number <= present.number order by o.number limit 100
        for update skip locked));
    return piece < 5 or more;
end
$$;
