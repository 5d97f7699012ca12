-- How messages reach an inbox: entries and their numbers, and push, which writes one message to one inbox.

-- Feeds look up rows for the values of an array, always by = any (array[value]) instead of = value. This form rules out a plan
-- that reads a whole table and compares each row with each value. The planner prefers such a plan while it believes that the
-- table is tiny, and keeps it while the table grows.

-- Deletes the entries that inboxes have beyond their length. The writers of an inbox call it now and then.
create function hotrow.trim_inboxes(user_id bigint[], newest bigint[]) returns void
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    kept bigint := (select s.inbox_length from hotrow.setting s where s.one);
begin
    delete from hotrow.inbox_entry e using unnest(trim_inboxes.user_id, newest) u (user_id, newest)
    where e.user_id = any (array[u.user_id]) and e.number <= u.newest - kept;
end
$$;

-- Locks inboxes, gives each the wanted number of new entry numbers and returns the last of them. The users come in order and
-- once each, and the locks are taken in that order, so that two batches wait for each other in one direction only. known: all
-- inboxes exist; an update alone is cheaper by a third.
create function hotrow.take_numbers(user_id bigint[], entries bigint[], known boolean) returns bigint[]
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    last bigint[];
begin
    if known then
        with moved as (
            update hotrow.inbox i set last = i.last + u.entries
            from (select u.* from unnest(user_id, entries) u (user_id, entries) order by u.user_id) u
            where i.user_id = any (array[u.user_id]) returning i.user_id, i.last)
        select array_agg(m.last order by m.user_id) into last from moved m;
    else
        with moved as (
            insert into hotrow.inbox as i (user_id, last)
            select u.* from unnest(user_id, entries) u (user_id, entries) order by u.user_id
            on conflict (user_id) do update set last = i.last + excluded.last returning user_id, last)
        select array_agg(m.last order by m.user_id) into last from moved m;
    end if;
    return last;
end
$$;

-- Writes entries and returns their numbers. The entries of one inbox keep the given order. They are either messages, with their
-- times (NULL: now) and contents, or posts.
create function hotrow.write_entries(user_id bigint[], from_user bigint[], post_id bigint[], at timestamptz[],
    content text[], known boolean) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
    present timestamptz := clock_timestamp();
    users bigint[];
    entries bigint[];
    last bigint[];
    numbers bigint[];
    long bigint[];
    newest bigint[];
begin
    select array_agg(u.user_id order by u.user_id), array_agg(u.entries order by u.user_id) into users, entries
    from (select u.user_id, count(*) as entries from unnest(user_id) u (user_id) group by u.user_id) u;
    last := hotrow.take_numbers(users, entries, known);
    with wanted as materialized (
        select w.*, last[w.slot] - entries[w.slot] + w.nth as number from (
            select u.*, dense_rank() over (order by u.user_id) as slot,
                row_number() over (partition by u.user_id order by u.place) as nth
            from unnest(user_id, from_user, post_id, at, content) with ordinality
                u (user_id, from_user, post_id, at, content, place)) w
    ), written as (
        insert into hotrow.inbox_entry (user_id, number, from_user, post_id, at, content)
        select w.user_id, w.number, w.from_user, w.post_id, case when w.post_id is null then coalesce(w.at, present) end, w.content
        from wanted w)
    select array_agg(w.number order by w.place),
        array_agg(w.user_id) filter (where w.number % 64 = 0), array_agg(w.number) filter (where w.number % 64 = 0)
    into numbers, long, newest from wanted w;
    if long is not null then
        perform hotrow.trim_inboxes(long, newest);
    end if;
    return numbers;
end
$$;

-- Refuses messages that are NULL or too long.
create function hotrow.check_content(content text[]) returns void
language plpgsql as $$
declare
    longest int := (select max(octet_length(u)) from unnest(content) u);
begin
    if array_position(content, null) > 0 then
        perform hotrow.null_argument('content');
    elsif longest > 1000000 then
        perform hotrow.bad_argument(format('the content has %s bytes', longest),
            'A message has at most 1000000 bytes; store what is longer elsewhere and send a reference.');
    end if;
end
$$;

-- Returns the arguments of a message or a post as they are recorded for its request ID, the same in every time zone of the
-- session.
create function hotrow.message_arguments(user_id bigint, from_user bigint, content text, at timestamptz) returns text
language sql stable as $$
    select concat_ws(' ', user_id, from_user, md5(content), extract(epoch from at))
$$;

-- Writes messages ('push') or posts ('post', by from_user) under request IDs. Calls with the same ID meet at the unique index
-- of the recorded answers: the second call waits, everything that it wrote is undone, and its second attempt finds the recorded
-- answer of the first.
create function hotrow.write_once(command text, user_id bigint[], from_user bigint[], content text[],
    created_at timestamptz[], request_id uuid[]) returns bigint[]
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    violated text;
    numbers bigint[];
    answers bigint[] := array_fill(null::bigint, array[cardinality(request_id)]);
    fresh record;
begin
    for attempt in 1 .. 2 loop
        begin
            -- Calls without an ID, and the first call of each unknown ID.
            select array_agg(u.user_id order by u.place) as users, array_agg(u.from_user order by u.place) as froms,
                array_agg(u.content order by u.place) as contents, array_agg(u.at order by u.place) as at,
                array_agg(u.request_id order by u.place) as ids, array_agg(u.place order by u.place) as places
            into fresh
            from unnest(user_id, from_user, content, created_at, request_id) with ordinality
                u (user_id, from_user, content, at, request_id, place)
            where u.request_id is null
                or array_position(write_once.request_id, u.request_id) = u.place
                    and not exists (select from hotrow.request r where r.request_id = any (array[u.request_id]));
            if fresh.users is not null then
                numbers := case write_once.command
                    when 'push' then hotrow.write_entries(fresh.users, fresh.froms, null, fresh.at, fresh.contents, false)
                    else hotrow.write_posts(fresh.froms, fresh.contents) end;
                insert into hotrow.request (request_id, command, arguments, status, value, at)
                select f.id, write_once.command, hotrow.message_arguments(f.user_id, f.from_user, f.content, f.at), 'ok',
                    f.number, clock_timestamp()
                from unnest(fresh.ids, fresh.users, fresh.froms, fresh.contents, fresh.at, numbers)
                    f (id, user_id, from_user, content, at, number)
                where f.id is not null order by f.id;
            end if;
            exit;
        exception when unique_violation then
            get stacked diagnostics violated = constraint_name;
            perform hotrow.check_retry(violated, attempt);
        end;
    end loop;
    perform hotrow.request_reused(u.request_id)
    from unnest(user_id, from_user, content, created_at, request_id) u (user_id, from_user, content, at, request_id)
    join hotrow.request r on r.request_id = any (array[u.request_id])
    where r.command <> write_once.command
        or r.arguments <> hotrow.message_arguments(u.user_id, u.from_user, u.content, u.at);
    -- Counted by the places, because a first attempt can have left numbers behind.
    for i in 1 .. coalesce(cardinality(fresh.places), 0) loop
        answers[fresh.places[i]] := numbers[i];
    end loop;
    return array(
        select coalesce(u.number, r.value)
        from unnest(request_id, answers) with ordinality u (request_id, number, place)
        left join hotrow.request r on u.number is null and r.request_id = any (array[u.request_id])
        order by u.place);
end
$$;

create function hotrow.push_batch(user_id bigint[], from_user bigint[], content text[],
    created_at timestamptz[] default null, request_id uuid[] default null)
returns table (entry_id bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(user_id);
    numbers bigint[];
begin
    perform hotrow.check_batch(calls, array_upper(user_id, 1), cardinality(from_user), array_upper(from_user, 1),
        cardinality(content), array_upper(content, 1), cardinality(created_at), array_upper(created_at, 1),
        cardinality(request_id), array_upper(request_id, 1));
    if array_position(user_id, null) > 0 then
        perform hotrow.null_argument('user_id');
    elsif array_position(from_user, null) > 0 then
        perform hotrow.null_argument('from_user');
    end if;
    perform hotrow.check_content(content);
    if calls = 0 then
        return;
    elsif num_nonnulls(variadic request_id) > 0 then
        numbers := hotrow.write_once('push', user_id, from_user, content, created_at, request_id);
    else
        numbers := hotrow.write_entries(user_id, from_user, null, created_at, content, false);
    end if;
    return query select u, 'ok'::text from unnest(numbers) u;
end
$$;

create function hotrow.push(user_id bigint, from_user bigint, content text, created_at timestamptz default null,
    request_id uuid default null, out entry_id bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
    if request_id is null and user_id is not null and from_user is not null and octet_length(content) <= 1000000 then
        -- The usual call does not build arrays.
        insert into hotrow.inbox as i (user_id, last) values (push.user_id, 1)
        on conflict (user_id) do update set last = i.last + 1 returning last into entry_id;
        insert into hotrow.inbox_entry (user_id, number, from_user, at, content)
        values (push.user_id, push.entry_id, push.from_user, coalesce(push.created_at, clock_timestamp()), push.content);
        if entry_id % 64 = 0 then
            perform hotrow.trim_inboxes(array[push.user_id], array[push.entry_id]);
        end if;
        status := 'ok';
        return;
    end if;
    select b.entry_id, b.status into push.entry_id, push.status from hotrow.push_batch(array[push.user_id],
        array[push.from_user], array[push.content], array[push.created_at], array[push.request_id]) b;
end
$$;
