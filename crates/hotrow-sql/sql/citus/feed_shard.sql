-- The parts of follow, unfollow and fan_out that run on the node of one shard of a distributed pack. The functions that clients
-- call are in feed_calls.sql.
--
-- A user belongs to one shard. It has the author's side, which is the user's posts, followers and posts on their way, and the
-- reader's side, which is the user's inbox and what has been read of it. An inbox stores copies of posts, because a reference
-- could lead to another node. A read therefore needs only the reader's shard, and a post only the author's.
--
-- All locks are taken in one order: first authors, then readers and inboxes, each of them shard by shard and, within a shard,
-- in the order of the users.

-- Writes copies of posts into inboxes that exist: pairs of a user and a post, in the order of each user's entries. The posts
-- come once each.
create function hotrow.write_copies(user_id bigint[], author bigint[], post_id bigint[], authors bigint[], posts bigint[],
    at timestamptz[], content text[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    users bigint[];
    entries bigint[];
    last bigint[];
    long bigint[];
    newest bigint[];
begin
    select array_agg(u.user_id order by u.user_id), array_agg(u.entries order by u.user_id) into users, entries
    from (select u.user_id, count(*) as entries from unnest(user_id) u (user_id) group by u.user_id) u;
    last := hotrow.take_numbers(users, entries, true);
    if cardinality(last) is distinct from cardinality(users) then
        raise exception using errcode = 'XX001', message = 'an inbox is missing',
            hint = 'Run hotrow verify: the pack''s tables were changed by something else.';
    end if;
    with wanted as materialized (
        select w.user_id, w.author, w.post_id, last[w.slot] - entries[w.slot] + w.nth as number from (
            select u.*, dense_rank() over (order by u.user_id) as slot,
                row_number() over (partition by u.user_id order by u.place) as nth
            from unnest(user_id, author, post_id) with ordinality u (user_id, author, post_id, place)) w
    ), written as (
        insert into hotrow.inbox_entry (user_id, number, from_user, post_id, at, content)
        select w.user_id, w.number, w.author, w.post_id, p.at, p.content
        from wanted w join unnest(authors, posts, write_copies.at, write_copies.content) p (author, post_id, at, content)
            on p.author = w.author and p.post_id = w.post_id)
    select array_agg(w.user_id) filter (where w.number % 64 = 0), array_agg(w.number) filter (where w.number % 64 = 0)
    into long, newest from wanted w;
    if long is not null then
        perform hotrow.trim_inboxes(long, newest);
    end if;
end
$$;

-- The author's side of follow: records new followers. Returns for each call whether it made a new pair, and the authors' newest
-- posts, as many as one of the calls wants.
create function hotrow.begin_following(user_id bigint[], followee bigint[], backfill int[],
    out fresh boolean[], out author bigint[], out post_id bigint[], out at timestamptz[], out content text[])
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    users bigint[];
    authors bigint[];
    size bigint;
begin
    perform hotrow.lock_authors(array(select u.b from unnest(user_id, followee) u (a, b) where u.a <> u.b));
    with fresh as (
        insert into hotrow.follow (author, user_id, since_post)
        select distinct u.followee, u.user_id, a.last_post
        from unnest(user_id, followee) u (user_id, followee)
        cross join lateral (select a.last_post from hotrow.author a where a.author = any (array[u.followee])) a
        where u.user_id <> u.followee order by u.followee, u.user_id
        on conflict do nothing returning user_id, author)
    select array_agg(f.user_id order by f.author, f.user_id), array_agg(f.author order by f.author, f.user_id)
    into users, authors from fresh f;
    fresh := hotrow.first_calls(user_id, followee, users, authors);
    if users is null then
        return;
    end if;
    update hotrow.author a set followers = a.followers + u.followers
    from (select u.author, count(*) as followers from unnest(authors) u (author) group by u.author) u
    where a.author = any (array[u.author]);
    select array_agg(p.author), array_agg(p.post_id), array_agg(p.at), array_agg(p.content), sum(octet_length(p.content))
    into begin_following.author, begin_following.post_id, begin_following.at, begin_following.content, size
    from (
        select u.author, max(u.backfill) as backfill from unnest(followee, backfill, fresh) u (author, backfill, fresh)
        where u.fresh group by u.author) u
    cross join lateral (
        select p.* from hotrow.post p where p.author = u.author order by p.post_id desc limit u.backfill) p;
    if size > 100000000 then
        raise exception using errcode = '0A000',
            message = format('the newest posts of the followed authors have %s bytes', size),
            hint = 'In a distributed hotrow schema, one call copies at most 100000000 bytes of posts between shards: follow with a'
                ' smaller backfill.';
    end if;
end
$$;

-- The reader's side of follow: makes the followers' readers and inboxes, and writes the posts.
--
-- The followers are those of all calls, also of calls that found the pair. The call that made it can have failed in the middle
-- of its commit, with this part prepared, and the client repeats it. This call then waits for that part, so the posts are there
-- when it returns.
create function hotrow.end_following(followers bigint[], user_id bigint[], author bigint[], post_id bigint[], authors bigint[],
    posts bigint[], at timestamptz[], content text[]) returns void
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    -- Every follower has a reader and an inbox, so fan-out makes neither.
    insert into hotrow.reader (user_id)
    select distinct u.user_id from unnest(followers) u (user_id) order by u.user_id on conflict do nothing;
    insert into hotrow.inbox (user_id, last)
    select distinct u.user_id, 0 from unnest(followers) u (user_id) order by u.user_id on conflict do nothing;
    perform hotrow.wait_for_inboxes(followers);
    if cardinality(user_id) > 0 then
        perform hotrow.write_copies(user_id, author, post_id, authors, posts, at, content);
    end if;
end
$$;

-- The author's side of unfollow: removes followers. Returns for each call whether it removed a pair.
create function hotrow.begin_unfollowing(user_id bigint[], followee bigint[], out gone boolean[])
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    users bigint[];
    authors bigint[];
begin
    perform a.author from unnest(array(select distinct u from unnest(followee) u order by u)) u (author)
    cross join lateral (select a.author from hotrow.author a where a.author = u.author for update) a;
    with gone as (
        delete from hotrow.follow f using unnest(begin_unfollowing.user_id, followee) u (user_id, author)
        where f.user_id = u.user_id and f.author = any (array[u.author]) returning f.user_id, f.author)
    select array_agg(g.user_id order by g.author, g.user_id), array_agg(g.author order by g.author, g.user_id)
    into users, authors from gone g;
    gone := hotrow.first_calls(user_id, followee, users, authors);
    update hotrow.author a set followers = a.followers - u.followers
    from (select u.author, count(*) as followers from unnest(authors) u (author) group by u.author) u
    where a.author = any (array[u.author]);
end
$$;

-- The reader's side of unfollow: removes posts of authors from inboxes, read or unread. Their numbers count as consumed.
--
-- A fan-out that brought a post before this call has committed on the author's node, because this call got the author's lock.
-- On this node its commit can still be under way, and its entries are not visible yet. It has locked the inbox, so this call
-- waits for the inbox, and sees them. Without that lock they would stay in the inbox of a user that has unfollowed.
--
-- It is called for all pairs, also if the user does not follow. The call that removed the follower can have failed in the middle
-- of its commit, with this part prepared, and the client repeats it. This call then waits for that part, so the posts are gone
-- when it returns.
create function hotrow.purge_copies(user_id bigint[], author bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    locked record;
    gone record;
    settled record;
begin
    locked := hotrow.lock_readers(purge_copies.user_id);
    perform from hotrow.inbox i where i.user_id = any (purge_copies.user_id) order by i.user_id for update;
    for gone in
        with deleted as (
            delete from hotrow.inbox_entry e using unnest(purge_copies.user_id, purge_copies.author) u (user_id, author)
            where e.user_id = any (array[u.user_id]) and e.from_user = u.author and e.post_id is not null
            returning e.user_id, e.number)
        select d.user_id, range_agg(int8range(d.number, d.number + 1)) as numbers from deleted d
        group by d.user_id order by d.user_id
    loop
        settled := hotrow.advance(locked.read_to[array_position(locked.users, gone.user_id)],
            locked.taken[array_position(locked.users, gone.user_id)] + gone.numbers);
        update hotrow.reader r set read_to = settled.read_to, taken = settled.taken where r.user_id = gone.user_id;
    end loop;
end
$$;

-- The authors of posts on their way that have waited longest.
create function hotrow.turns() returns table (author bigint, at timestamptz)
language plpgsql stable set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return query select t.author, t.at from hotrow.fan_out_turn t order by t.at, t.author limit 100;
end
$$;

-- Begins an author's turn. Returns the first followers, `most` at most, that were left out before; NULL if another transaction
-- has the author locked, or if there is nothing to bring any more. If it waits, it gets its place in the queue for the author:
-- where users follow and unfollow all the time, the author is never free by chance. The caller has no lock yet, so no other
-- transaction waits for it meanwhile.
create function hotrow.begin_turn(author bigint, most int, waits boolean) returns bigint[]
language plpgsql set enable_seqscan = off set lock_timeout = '100ms' as $$
#variable_conflict use_column
begin
    if waits then
        perform from hotrow.author a where a.author = begin_turn.author for update;
    else
        perform from hotrow.author a where a.author = begin_turn.author for update skip locked;
    end if;
    if not found or not exists (select from hotrow.fan_out_turn t where t.author = begin_turn.author) then
        return null;
    end if;
    -- Goes from each user to the next, however many posts each of them has.
    return array(
        with recursive u (user_id) as (
            (select l.user_id from hotrow.fan_out_left l where l.author = begin_turn.author order by l.user_id limit 1)
            union all
            select n.user_id from u cross join lateral (
                select l.user_id from hotrow.fan_out_left l
                where l.author = begin_turn.author and l.user_id > u.user_id order by l.user_id limit 1) n)
        select u.user_id from u limit most);
end
$$;

-- Returns the users whose inbox no other transaction has locked, and locks these inboxes.
create function hotrow.free_inboxes(user_id bigint[]) returns bigint[]
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return array(
        select i.user_id from hotrow.inbox i where i.user_id = any (free_inboxes.user_id)
        order by i.user_id for update skip locked);
end
$$;

-- Takes posts that were left out before, for users whose inboxes the caller has locked. Returns the pairs, `most` at most, of a
-- user that still wants the post and the post, and each of the posts once. The caller holds the author's lock.
create function hotrow.take_left(author bigint, free bigint[], most int,
    out user_id bigint[], out post_id bigint[], out posts bigint[], out at timestamptz[], out content text[])
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    users bigint[];
    left_out bigint[];
begin
    -- The first posts, up to 50 megabytes of them, because they are passed on in one message.
    select array_agg(w.post_id), array_agg(w.at), array_agg(w.content) into posts, take_left.at, take_left.content from (
        select p.post_id, p.at, p.content,
            sum(octet_length(p.content)) over (order by p.post_id) - octet_length(p.content) as size
        from (
            select distinct l.post_id from unnest(free) u (user_id)
            cross join lateral (
                select l.post_id from hotrow.fan_out_left l
                where l.author = take_left.author and l.user_id = u.user_id order by l.post_id limit most) l) l
        cross join lateral (
            select p.* from hotrow.post p where p.author = take_left.author and p.post_id = l.post_id) p) w
    where w.size < 50000000;
    select array_agg(w.user_id order by w.post_id, w.user_id), array_agg(w.post_id order by w.post_id, w.user_id)
    into users, left_out from (
        select u.user_id, l.post_id from unnest(free) u (user_id)
        cross join lateral (
            select l.post_id from hotrow.fan_out_left l
            where l.author = take_left.author and l.user_id = u.user_id and l.post_id = any (posts)
            order by l.post_id limit most) l
        limit most) w;
    delete from hotrow.fan_out_left l using unnest(users, left_out) u (user_id, post_id)
    where l.author = take_left.author and l.user_id = any (array[u.user_id]) and l.post_id = any (array[u.post_id]);
    select array_agg(u.user_id order by u.place), array_agg(u.post_id order by u.place) into take_left.user_id, take_left.post_id
    from unnest(users, left_out) with ordinality u (user_id, post_id, place)
    cross join lateral (
        select from hotrow.follow f where f.author = any (array[take_left.author]) and f.user_id = u.user_id
            and f.since_post < u.post_id and not f.muted) f;
end
$$;

-- Takes the author's first post on its way and the next followers that want it, `most` at most, until there are such followers
-- or no post is left. Writes the progress of the post, and returns the followers that can get it now. A follower that has been
-- left out gets no newer post before those that it waits for: it is left out again. The caller holds the author's lock.
create function hotrow.take_chunk(author bigint, most int,
    out post_id bigint, out at timestamptz, out content text, out user_id bigint[], out dealt_with bigint)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    job hotrow.fan_out;
    looked record;
    chunk int;
begin
    dealt_with := 0;
    while dealt_with = 0 loop
        select f.* into job from hotrow.fan_out f where f.author = take_chunk.author order by f.post_id limit 1;
        exit when not found;
        select p.post_id, p.at, p.content into take_chunk.post_id, take_chunk.at, take_chunk.content
        from hotrow.post p where p.author = take_chunk.author and p.post_id = job.post_id;
        -- One transaction writes about 100 megabytes.
        chunk := least(most, greatest(100000000 / greatest(octet_length(take_chunk.content), 1), 1));
        select count(*) as users, max(f.user_id) as last, array_agg(f.user_id) filter (where f.wants) as wanting
        into looked from (
            select f.user_id, f.since_post < job.post_id and not f.muted as wants from hotrow.follow f
            where f.author = take_chunk.author and f.user_id >= job.next_user order by f.user_id limit chunk) f;
        dealt_with := coalesce(cardinality(looked.wanting), 0);
        take_chunk.user_id := array(
            select u from unnest(looked.wanting) u where not exists (
                select from hotrow.fan_out_left l where l.author = take_chunk.author and l.user_id = any (array[u])) order by u);
        if cardinality(take_chunk.user_id) < dealt_with then
            insert into hotrow.fan_out_left (author, user_id, post_id)
            select take_chunk.author, u.user_id, job.post_id
            from (select unnest(looked.wanting) except select unnest(take_chunk.user_id)) u (user_id);
        end if;
        if looked.users = chunk and looked.last < 9223372036854775807 then
            update hotrow.fan_out f set next_user = looked.last + 1
            where f.author = take_chunk.author and f.post_id = job.post_id;
        else
            delete from hotrow.fan_out f where f.author = take_chunk.author and f.post_id = job.post_id;
        end if;
    end loop;
end
$$;

-- Writes posts of one author into inboxes. Returns the users whose inbox another transaction keeps locked, and those whose inbox
-- is not there: the call that made the user a follower has committed on the author's node, and not yet on this one. They get
-- the posts later.
create function hotrow.deliver(author bigint, user_id bigint[], post_id bigint[], posts bigint[], at timestamptz[],
    content text[]) returns bigint[]
language plpgsql set lock_timeout = '100ms' as $$
#variable_conflict use_column
declare
    free bigint[];
    pairs record;
begin
    begin
        free := hotrow.wait_for_inboxes(deliver.user_id);
    exception
        when lock_not_available then
            -- If a transaction keeps some of the inboxes locked, the other followers do not wait for it.
            free := hotrow.free_inboxes(deliver.user_id);
    end;
    select array_agg(u.user_id order by u.place) as users, array_agg(u.post_id order by u.place) as posts into pairs
    from unnest(deliver.user_id, deliver.post_id) with ordinality u (user_id, post_id, place)
    join unnest(free) f (user_id) on f.user_id = u.user_id;
    if pairs.users is not null then
        perform hotrow.write_copies(pairs.users, array_fill(deliver.author, array[cardinality(pairs.users)]), pairs.posts,
            array_fill(deliver.author, array[cardinality(posts)]), posts, at, content);
    end if;
    return array(select unnest(deliver.user_id) except select unnest(free) order by 1);
end
$$;

-- Locks inboxes in the order of the users, and returns the users that have one.
create function hotrow.wait_for_inboxes(user_id bigint[]) returns bigint[]
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    return array(
        select i.user_id from hotrow.inbox i where i.user_id = any (wait_for_inboxes.user_id) order by i.user_id for update);
end
$$;

-- Ends an author's turn: followers that did not get the post now get it later, and the author goes to the end of the line, or
-- leaves it if there is nothing to bring any more.
create function hotrow.end_turn(author bigint, post_id bigint, missed bigint[]) returns void
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    insert into hotrow.fan_out_left (author, user_id, post_id)
    select end_turn.author, u.user_id, end_turn.post_id from unnest(missed) u (user_id);
    if exists (select from hotrow.fan_out f where f.author = end_turn.author)
        or exists (select from hotrow.fan_out_left l where l.author = end_turn.author)
    then
        update hotrow.fan_out_turn t set at = clock_timestamp() where t.author = end_turn.author;
    else
        delete from hotrow.fan_out_turn t where t.author = end_turn.author;
    end if;
end
$$;
