-- Functions for readers: consume, peek, unread, mark_read_up_to, past. Other files write the entries of inboxes.

-- Merges posts of the authors whose posts are fetched into inboxes, oldest first. The caller holds the readers' locks.
create function hotrow.pull_posts(user_id bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    found record;
begin
    select array_agg(w.user_id order by w.at, w.author, w.post_id) filter (where w.post_id is not null) as users,
        array_agg(w.author order by w.at, w.author, w.post_id) filter (where w.post_id is not null) as authors,
        array_agg(w.post_id order by w.at, w.author, w.post_id) filter (where w.post_id is not null) as posts,
        array_agg(w.user_id) as pullers, array_agg(w.author) as pulled, array_agg(w.last_post) as pulled_to
    into found from (
        select u.user_id, l.author, a.last_post, p.post_id, p.at
        from unnest(pull_posts.user_id) u (user_id)
        cross join lateral (
            select l.author, l.pulled_to from hotrow.pull l where l.user_id = any (array[u.user_id])) l
        cross join lateral (
            select a.last_post, greatest(l.pulled_to, a.pulled_from - 1, a.last_post
                - (select s.inbox_length from hotrow.setting s where s.one)) as after
            from hotrow.author a
            where a.author = any (array[l.author]) and a.pulled_from is not null and a.last_post > l.pulled_to) a
        left join lateral (
            select p.post_id, p.at from hotrow.post p where p.author = any (array[l.author]) and p.post_id > a.after) p on true) w;
    if found.users is not null then
        perform hotrow.write_entries(found.users, found.authors, found.posts, null, null, true);
    end if;
    if found.pullers is not null then
        update hotrow.pull l set pulled_to = f.pulled_to
        from (select distinct f.* from unnest(found.pullers, found.pulled, found.pulled_to) f (user_id, author, pulled_to)) f
        where l.user_id = any (array[f.user_id]) and l.author = f.author;
    end if;
end
$$;

-- Returns the number before the first entry of an inbox after floor. The entries in between are gone: writers deleted them while
-- setting.inbox_length was smaller than now. Writers keep at least 64 entries, so the last 64 need no search.
create function hotrow.gone_to(user_id bigint, floor bigint, last bigint) returns bigint
language plpgsql stable as $$
#variable_conflict use_column
begin
    if last - floor < 64 then
        return floor;
    end if;
    return least(last, coalesce((
        select e.number - 1 from hotrow.inbox_entry e where e.user_id = gone_to.user_id and e.number > gone_to.floor
        order by e.number limit 1), last));
end
$$;

-- Locks readers in the order of their users, and returns the read state and the newest entry of each. For a user without an
-- inbox, last is 0, and no row is made.
create function hotrow.lock_readers(
    user_id bigint[], out users bigint[], out read_to bigint[], out taken int8multirange[], out last bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    kept bigint := (select s.inbox_length from hotrow.setting s where s.one);
    fresh bigint[];
    pulling bigint[];
    settled record;
    gone bigint;
begin
    users := array(select distinct u.user_id from unnest(lock_readers.user_id) u (user_id) order by 1);
    for attempt in 1 .. 2 loop
        -- The newest entry can be read before the lock: the next call gets entries that come in between.
        select array_agg(u.last order by u.user_id),
            array_agg(u.user_id order by u.user_id) filter (where u.last > 0 and not u.known)
        into lock_readers.last, fresh from (
            select u.user_id,
                coalesce((select i.last from hotrow.inbox i where i.user_id = u.user_id), 0) as last,
                exists (select from hotrow.reader r where r.user_id = any (array[u.user_id])) as known
            from unnest(users) u (user_id) offset 0) u;
        if fresh is not null then
            -- Before any lock is taken: a call that waits here holds only rows that no other session has seen.
            insert into hotrow.reader (user_id)
            select u.user_id from unnest(fresh) u (user_id) order by u.user_id on conflict do nothing;
        end if;
        select array_agg(coalesce(r.read_to, 0) order by u.place), array_agg(coalesce(r.taken, '{}') order by u.place),
            array_agg(u.user_id order by u.place) filter (where r.pulls)
        into lock_readers.read_to, lock_readers.taken, pulling
        from unnest(users) with ordinality u (user_id, place)
        left join lateral (select r.* from hotrow.reader r where r.user_id = u.user_id for update) r on true;
        exit when pulling is null or attempt = 2;
        perform hotrow.pull_posts(pulling);
    end loop;
    for i in 1 .. cardinality(users) loop
        gone := hotrow.gone_to(users[i], greatest(read_to[i], last[i] - kept), last[i]);
        if read_to[i] < gone then
            select s.read_to, s.taken into settled from hotrow.advance(gone, taken[i]) s;
            read_to[i] := settled.read_to;
            taken[i] := settled.taken;
        end if;
    end loop;
end
$$;

-- Adds to read_to the consumed entries that now follow it without a gap.
create function hotrow.advance(inout read_to bigint, inout taken int8multirange)
language plpgsql immutable as $$
declare
    part int8range;
begin
    taken := taken * int8multirange(int8range(read_to + 1, null));
    part := (select u from unnest(taken) u order by u limit 1);
    if lower(part) = read_to + 1 then
        read_to := upper(part) - 1;
        taken := taken - int8multirange(part);
    end if;
end
$$;

-- Returns the first numbers of a multirange, or with back the last ones.
create function hotrow.first_numbers(numbers int8multirange, most bigint, back boolean) returns int8multirange
language plpgsql immutable as $$
declare
    part int8range;
    chosen int8multirange := '{}';
    wanted bigint := most;
    size bigint;
begin
    for part in
        select u from unnest(numbers) u order by case when back then -lower(u) else lower(u) end
    loop
        exit when wanted = 0;
        size := least(upper(part) - lower(part), wanted);
        chosen := chosen + int8multirange(case when back then int8range(upper(part) - size, upper(part))
            else int8range(lower(part), lower(part) + size) end);
        wanted := wanted - size;
    end loop;
    return chosen;
end
$$;

-- Returns the name of the copy of a ranking's function.
create function hotrow.ranking_name(ranking text) returns text
language sql immutable as $$
    select 'ranking_' || md5(ranking)
$$;

-- Returns the numbers of the unread entries of one inbox that come first by author or by a registered ranking, in that order.
-- Only this function builds SQL, and it inserts only the name of a function that add_ranking has made.
create function hotrow.ranked_numbers(user_id bigint, unread int8multirange, most bigint, sort text) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
    numbers bigint[];
begin
    if sort = 'author' then
        return array(
            select e.number from hotrow.inbox_entry e
            where e.user_id = ranked_numbers.user_id and e.number between lower(unread) and upper(unread) - 1
                and e.number <@ unread
            order by e.from_user, e.number limit most);
    end if;
    execute format('
        select array_agg(e.number order by e.score desc nulls last, e.number) from (
            select e.number, {{pack}}.%I($1, e.from_user, coalesce(e.at, p.at), coalesce(e.content, p.content)) as score
            from hotrow.inbox_entry e
            left join lateral (select p.at, p.content from hotrow.post p
                where e.post_id is not null {{many}}and e.content is null {{end}}and p.author = e.from_user and p.post_id = e.post_id offset 0) p on true
            where e.user_id = $1 and e.number between lower($2) and upper($2) - 1 and e.number <@ $2
            order by score desc nulls last, e.number limit $3) e', hotrow.ranking_name(sort))
    into numbers using user_id, unread, most;
    return coalesce(numbers, '{}');
end
$$;

-- Writes what the readers that have changed have consumed. The caller holds their locks.
create function hotrow.write_readers(users bigint[], read_to bigint[], taken int8multirange[], changed boolean[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    update hotrow.reader r set read_to = u.read_to, taken = u.taken
    from unnest(users, write_readers.read_to, write_readers.taken, write_readers.changed) u (user_id, read_to, taken, changed)
    where u.changed and r.user_id = any (array[u.user_id]);
end
$$;

-- Judges reading calls one after another, and returns which entries each gets, in order: stretches of numbers, each with its
-- call. With taking, the entries are consumed.
create function hotrow.judge_reads(user_id bigint[], max int[], sort text[], taking boolean,
    out seg_call int[], out seg_user bigint[], out seg_first bigint[], out seg_last bigint[], out seg_back boolean[])
language plpgsql as $$
#variable_conflict use_column
declare
    users bigint[];
    read bigint[];
    beyond int8multirange[];
    last bigint[];
    slot int;
    most bigint;
    chosen int8multirange;
    numbers bigint[];
    part int8range;
    settled record;
    changed boolean[];
    n int := 0;
begin
    perform hotrow.check_reads(user_id, max, sort);
    select l.users, l.read_to, l.taken, l.last into users, read, beyond, last from hotrow.lock_readers(user_id) l;
    changed := array_fill(false, array[cardinality(users)]);
    for i in 1 .. cardinality(user_id) loop
        slot := array_position(users, user_id[i]);
        most := least(max[i], last[slot] - read[slot]);
        continue when most <= 0;
        if sort[i] = 'oldest' and isempty(beyond[slot]) then
            -- The usual call gets the next few entries, and no entry after them is consumed.
            n := n + 1;
            seg_call[n] := i;
            seg_user[n] := user_id[i];
            seg_first[n] := read[slot] + 1;
            seg_last[n] := read[slot] + most;
            seg_back[n] := false;
            read[slot] := seg_last[n];
        else
            chosen := int8multirange(int8range(read[slot] + 1, last[slot] + 1)) - beyond[slot];
            if sort[i] in ('oldest', 'newest') then
                chosen := hotrow.first_numbers(chosen, most, sort[i] = 'newest');
                for part in select u from unnest(chosen) u order by case when sort[i] = 'newest' then -lower(u) else lower(u) end loop
                    n := n + 1;
                    seg_call[n] := i;
                    seg_user[n] := user_id[i];
                    seg_first[n] := lower(part);
                    seg_last[n] := upper(part) - 1;
                    seg_back[n] := sort[i] = 'newest';
                end loop;
            else
                numbers := hotrow.ranked_numbers(user_id[i], chosen, most, sort[i]);
                chosen := '{}';
                for k in 1 .. cardinality(numbers) loop
                    n := n + 1;
                    seg_call[n] := i;
                    seg_user[n] := user_id[i];
                    seg_first[n] := numbers[k];
                    seg_last[n] := numbers[k];
                    seg_back[n] := false;
                    chosen := chosen + int8multirange(int8range(numbers[k], numbers[k] + 1));
                end loop;
            end if;
            select s.read_to, s.taken into settled from hotrow.advance(read[slot], beyond[slot] + chosen) s;
            read[slot] := settled.read_to;
            beyond[slot] := settled.taken;
        end if;
        changed[slot] := true;
    end loop;
    if taking and true = any (changed) then
        perform hotrow.write_readers(users, read, beyond, changed);
    end if;
end
$$;

-- Returns the entries of stretches of numbers. The server inlines it into the calling statement, which saves a copy of the
-- messages.
create function hotrow.entries(calls int[], users bigint[], firsts bigint[], lasts bigint[], backs boolean[])
returns table (call int, entry_id bigint, from_user bigint, post_id bigint, created_at timestamptz, content text)
language sql stable as $$
    select s.call, e.number, e.from_user, e.post_id, coalesce(e.at, p.at), coalesce(e.content, p.content)
    from unnest(calls, users, firsts, lasts, backs) s (call, user_id, first, last, back)
    cross join lateral (
        -- Only one of the two has rows, and they are in the order of the index: nothing is sorted.
        (select e.* from hotrow.inbox_entry e
        where not s.back and e.user_id = s.user_id and e.number between s.first and s.last order by e.number)
        union all
        (select e.* from hotrow.inbox_entry e
        where s.back and e.user_id = s.user_id and e.number between s.first and s.last order by e.number desc)) e
    left join lateral (select p.at, p.content from hotrow.post p
        where e.post_id is not null {{many}}and e.content is null {{end}}and p.author = e.from_user and p.post_id = e.post_id offset 0) p on true
$$;

-- Refuses reads that are wrong in every state of an inbox.
create function hotrow.check_reads(user_id bigint[], max int[], sort text[]) returns void
language plpgsql as $$
begin
    if array_position(user_id, null) > 0 then
        perform hotrow.null_argument('user_id');
    elsif array_position(max, null) > 0 then
        perform hotrow.null_argument('max');
    elsif array_position(sort, null) > 0 then
        perform hotrow.null_argument('sort');
    elsif 0 > any (max) or 1000 < any (max) then
        perform hotrow.bad_argument('max is below 0 or above 1000', 'Read 0 to 1000 messages at a time.');
    end if;
    perform hotrow.bad_argument(format('sort %L is unknown', u.sort),
        'Sort by oldest, newest or author, or register a ranking with {{pack}}.add_ranking.')
    from unnest(sort) u (sort)
    where u.sort not in ('oldest', 'newest', 'author')
        and not exists (select from hotrow.ranking r where r.ranking = u.sort);
end
$$;

create function hotrow.consume_batch(user_id bigint[], max int[] default null, sort text[] default null)
returns table (call int, entry_id bigint, from_user bigint, post_id bigint, created_at timestamptz, content text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    calls int := cardinality(user_id);
    judged record;
begin
    perform hotrow.check_batch(calls, array_upper(user_id, 1), coalesce(cardinality(max), calls),
        coalesce(array_upper(max, 1), calls), coalesce(cardinality(sort), calls), coalesce(array_upper(sort, 1), calls));
    if calls > 0 then
        judged := hotrow.judge_reads(consume_batch.user_id, coalesce(consume_batch.max, array_fill(20, array[calls])),
            coalesce(consume_batch.sort, array_fill('oldest'::text, array[calls])), true);
        return query select e.* from hotrow.entries(
            judged.seg_call, judged.seg_user, judged.seg_first, judged.seg_last, judged.seg_back) e;
    end if;
end
$$;

create function hotrow.consume(user_id bigint, max int default 20, sort text default 'oldest')
returns table (entry_id bigint, from_user bigint, post_id bigint, created_at timestamptz, content text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    reader hotrow.reader;
    last bigint;
    first bigint;
    upto bigint;
    judged record;
begin
    if sort = 'oldest' and max between 0 and 1000 then
        select r.* into reader from hotrow.reader r where r.user_id = consume.user_id for update;
        if not found then
            -- The user's first read of an existing inbox.
            insert into hotrow.reader (user_id)
            select i.user_id from hotrow.inbox i where i.user_id = consume.user_id on conflict do nothing;
            select r.* into reader from hotrow.reader r where r.user_id = consume.user_id for update;
        end if;
        if found and isempty(reader.taken) and not reader.pulls then
            -- The usual call does not build arrays: the server opens one partition of each table.
            last := (select i.last from hotrow.inbox i where i.user_id = consume.user_id);
            first := hotrow.gone_to(consume.user_id,
                greatest(reader.read_to, last - (select s.inbox_length from hotrow.setting s where s.one)), last);
            upto := least(last, first + max);
            if upto > first then
                update hotrow.reader r set read_to = upto where r.user_id = consume.user_id;
                return query
                    select e.number, e.from_user, e.post_id, coalesce(e.at, p.at), coalesce(e.content, p.content)
                    from hotrow.inbox_entry e
                    left join lateral (select p.at, p.content from hotrow.post p
                        where e.post_id is not null {{many}}and e.content is null {{end}}and p.author = e.from_user and p.post_id = e.post_id offset 0) p on true
                    where e.user_id = consume.user_id and e.number > first and e.number <= upto order by e.number;
            end if;
            return;
        end if;
    end if;
    judged := hotrow.judge_reads(array[consume.user_id], array[consume.max], array[consume.sort], true);
    return query select e.entry_id, e.from_user, e.post_id, e.created_at, e.content
        from hotrow.entries(judged.seg_call, judged.seg_user, judged.seg_first, judged.seg_last, judged.seg_back) e;
end
$$;

-- Returns the messages that consume would return, and consumes nothing.
create function hotrow.peek(user_id bigint, max int default 20, sort text default 'oldest')
returns table (entry_id bigint, from_user bigint, post_id bigint, created_at timestamptz, content text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    judged record;
begin
    judged := hotrow.judge_reads(array[peek.user_id], array[peek.max], array[peek.sort], false);
    return query select e.entry_id, e.from_user, e.post_id, e.created_at, e.content
        from hotrow.entries(judged.seg_call, judged.seg_user, judged.seg_first, judged.seg_last, judged.seg_back) e;
end
$$;

-- Returns how many messages of an inbox are not consumed. Counts no rows, and looks for the first one at most. Stable: everything it reads is from one snapshot.
create function hotrow.unread(user_id bigint) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    kept bigint := (select s.inbox_length from hotrow.setting s where s.one);
    last bigint := coalesce((select i.last from hotrow.inbox i where i.user_id = unread.user_id), 0);
    reader hotrow.reader;
    coming bigint := 0;
begin
    if user_id is null then
        perform hotrow.null_argument('user_id');
    end if;
    select r.* into reader from hotrow.reader r where r.user_id = unread.user_id;
    if reader.pulls then
        select coalesce(sum(greatest(least(a.last_post - greatest(l.pulled_to, a.pulled_from - 1, a.forgotten_to), kept), 0)), 0)
        into coming
        from hotrow.pull l cross join lateral (
            select a.last_post, a.pulled_from, a.forgotten_to from hotrow.author a
            where a.author = any (array[l.author]) and a.pulled_from is not null) a
        where l.user_id = unread.user_id;
    end if;
    reader.read_to := hotrow.gone_to(unread.user_id, greatest(reader.read_to, last + coming - kept, 0), last);
    select s.read_to, s.taken into reader.read_to, reader.taken
    from hotrow.advance(reader.read_to, coalesce(reader.taken, '{}')) s;
    return last + coming - reader.read_to
        - (select coalesce(sum(upper(u) - lower(u)), 0) from unnest(reader.taken) u);
end
$$;

-- Consumes every entry up to this one and returns how many of them were unread.
create function hotrow.mark_read_up_to(user_id bigint, entry_id bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    locked record;
    settled record;
    upto bigint;
begin
    if user_id is null or entry_id is null then
        perform hotrow.null_argument('user_id or entry_id');
    end if;
    locked := hotrow.lock_readers(array[mark_read_up_to.user_id]);
    upto := least(mark_read_up_to.entry_id, locked.last[1]);
    if upto <= locked.read_to[1] then
        return 0;
    end if;
    settled := hotrow.advance(upto, locked.taken[1]);
    update hotrow.reader r set read_to = settled.read_to, taken = settled.taken where r.user_id = mark_read_up_to.user_id;
    return upto - locked.read_to[1] - (
        select coalesce(sum(upper(u) - lower(u)), 0)
        from unnest(locked.taken[1] * int8multirange(int8range(null, upto + 1))) u);
end
$$;

-- Returns a page of the entries that an inbox has kept, newest first, read or not: those before the last entry of the page
-- before.
create function hotrow.past(user_id bigint, before bigint default null, max int default 20)
returns table (entry_id bigint, from_user bigint, post_id bigint, created_at timestamptz, content text, consumed boolean)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    reader hotrow.reader;
    gone bigint := (select i.last - (select s.inbox_length from hotrow.setting s where s.one)
        from hotrow.inbox i where i.user_id = past.user_id);
begin
    perform hotrow.check_reads(array[past.user_id], array[max], array['newest']);
    select r.* into reader from hotrow.reader r where r.user_id = past.user_id;
    return query
        select e.number, e.from_user, e.post_id, coalesce(e.at, p.at), coalesce(e.content, p.content),
            e.number <= coalesce(reader.read_to, 0) or e.number <@ coalesce(reader.taken, '{}')
        from hotrow.inbox_entry e
        left join lateral (select p.at, p.content from hotrow.post p
            where e.post_id is not null {{many}}and e.content is null {{end}}and p.author = e.from_user and p.post_id = e.post_id offset 0) p on true
        where e.user_id = past.user_id and e.number > gone and e.number < coalesce(past.before, 9223372036854775807)
        order by e.number desc limit max;
end
$$;

-- Registers an order for unread messages: a function of (user_id bigint, from_user bigint, created_at timestamptz, content
-- text); the highest value comes first. It runs as the pack's owner, and only the owner can register it.
--
-- The function that runs is a copy that belongs to the pack's owner. Otherwise, between any check and the call that follows
-- it, the owner of the original function could replace it, and another role could put a function under its name.
create function hotrow.add_ranking(ranking text, function text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    found pg_proc;
    definition text;
    head text;
    copy text;
begin
{{many}}
    perform hotrow.check_coordinator('add_ranking');
{{end}}
    perform hotrow.check_name('ranking', ranking);
    if ranking in ('oldest', 'newest', 'author') then
        perform hotrow.bad_argument(format('%s is taken', ranking), 'Choose another name.');
    end if;
    select p.* into found from pg_proc p where p.oid = to_regprocedure(function);
    if found.proargtypes is distinct from '20 20 1184 25'::oidvector or found.prorettype <> 'float8'::regtype
        or found.proretset or found.prokind <> 'f' then
        perform hotrow.bad_argument(format('%s is no ranking', coalesce(function, 'NULL')),
            'Name a function with its types that takes (bigint, bigint, timestamptz, text) and returns double precision.');
    end if;
    copy := format('hotrow.%I', hotrow.ranking_name(ranking));
    definition := pg_get_functiondef(found.oid);
    head := (select format('CREATE OR REPLACE FUNCTION %I.%I(', n.nspname, found.proname)
        from pg_namespace n where n.oid = found.pronamespace);
    if not starts_with(definition, head) then
        perform hotrow.bad_argument(format('%s can''t be copied', function), 'Give it a name without special characters.');
    end if;
    execute format('drop function if exists %s(bigint, bigint, timestamptz, text)', copy);
    execute format('create or replace function %s(%s', copy, substr(definition, length(head) + 1));
    execute format('alter function %s(bigint, bigint, timestamptz, text) security invoker', copy);
    execute format('revoke execute on function %s(bigint, bigint, timestamptz, text) from public', copy);
    insert into hotrow.ranking as r (ranking, function)
    values (add_ranking.ranking, found.oid::regprocedure::text)
    on conflict (ranking) do update set function = excluded.function;
{{many}}
    perform hotrow.share_ranking(add_ranking.ranking);
{{end}}
end
$$;
