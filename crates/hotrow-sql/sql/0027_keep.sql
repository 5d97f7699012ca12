-- The pack's upkeep as one call, which the gateway makes. Never how any of it is done.

-- Whose turn it is. Whoever holds the row's lock is at it.
create table hotrow.upkeep (
    one boolean primary key default true check (one),
    step int not null default 0,
    -- In this round something had more to do than a call does.
    unfinished boolean not null default false
);
insert into hotrow.upkeep default values;

-- Does the next piece of what has to be done now and then, and says whether to call again at once; false ends a round. One
-- piece a transaction, so that the locks of one are not held while another is done, and all in turn, so that none starves
-- behind one that never ends. Two at once are no use: the second is told to come later. What fails is left to the next round.
create function hotrow.keep() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set lock_timeout = '1s' as $$
#variable_conflict use_column
declare
    present hotrow.upkeep;
    more boolean := false;
begin
    select u.* into present from hotrow.upkeep u where u.one for update skip locked;
    if not found then
        return false;
    end if;
    begin
        case present.step
            when 0 then more := hotrow.expire_holds(1000) = 1000;
            when 1 then more := hotrow.fan_out(1000) > 0;
            when 2 then more := hotrow.forget_requests(1000) = 1000;
            when 3 then
                -- What queues that were dropped have left goes with its parts.
                if exists (select from hotrow.queue) or exists (select from hotrow.queue_order)
                    or exists (select from hotrow.processed_order)
                then
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
            raise warning using message = format('hotrow.keep, step %s: %s', present.step, sqlerrm),
                hint = 'It is tried again in the next round.';
    end;
    update hotrow.upkeep u
    set step = case when present.step < 5 then present.step + 1 else 0 end,
        unfinished = present.step < 5 and (present.unfinished or more)
    where u.one;
    return present.step < 5 or present.unfinished or more;
end
$$;
