-- The pack's upkeep as one call, which the gateway makes. Never how any of it is done.

-- Where the present round has come to: the newest row says. A call adds a row and locks none. If the place were one row, a
-- transaction that is left open after its call would have it locked, and nobody else could do any upkeep meanwhile.
create table hotrow.upkeep (
    number bigint generated always as identity primary key,
    step int not null,
    -- In this round something had more to do than a call does.
    unfinished boolean not null
);

-- Does the next piece of what has to be done now and then, and says whether to call again at once; false ends a round. One
-- piece a transaction, so that the locks of one are not held while another is done, and all in turn, so that none starves
-- behind one that never ends. Several sessions may be at it at once, since each piece skips what another one is busy with.
-- What fails is left to the next round.
create function hotrow.keep() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
set lock_timeout = '1s' as $$
#variable_conflict use_column
declare
    present hotrow.upkeep;
    piece int;
    more boolean := false;
begin
    select u.* into present from hotrow.upkeep u order by u.number desc limit 1;
    piece := coalesce(present.step, 0);
    begin
        case piece
            when 0 then more := hotrow.expire_holds(1000) = 1000;
            when 1 then more := hotrow.fan_out(1000) > 0;
            when 2 then more := hotrow.forget_requests(1000) = 1000;
            when 3 then
                -- What queues that were dropped have left goes with its parts. To look at the parts is to lock them until the
                -- transaction ends, so it is done only if there is no queue.
                if exists (select from hotrow.queue) then
                    perform hotrow.rotate_queues();
                elsif exists (select from hotrow.queue_order) or exists (select from hotrow.processed_order) then
                    perform hotrow.rotate_queues();
                end if;
            when 4 then perform hotrow.rotate_history();
            -- So few that they are nobody's load, and in 90 days yet 25 million inboxes.
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
    insert into hotrow.upkeep (step, unfinished)
    values (case when piece < 5 then piece + 1 else 0 end, piece < 5 and more);
    delete from hotrow.upkeep u where u.number = any (array(
        select o.number from hotrow.upkeep o where o.number <= present.number order by o.number limit 100
        for update skip locked));
    return piece < 5 or more;
end
$$;
