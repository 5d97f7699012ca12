-- Followers and authors: follow, unfollow, mute. A call that changes them holds the author's lock. All locks of feeds are
-- taken in one order: authors, followers, readers, inboxes.

-- Locks authors in order and makes those that are missing.
create function hotrow.lock_authors(author bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    insert into hotrow.author as a (author)
    select distinct u.author from unnest(lock_authors.author) u (author) order by u.author
    on conflict (author) do update set last_post = a.last_post;
end
$$;

-- Makes these readers fetch these authors' posts after the given ones. The caller holds the authors' locks.
create function hotrow.start_pulling(user_id bigint[], author bigint[], pulled_to bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    insert into hotrow.reader as r (user_id, pulls)
    select distinct u.user_id, true from unnest(start_pulling.user_id) u (user_id) order by u.user_id
    on conflict (user_id) do update set pulls = true;
    insert into hotrow.pull (user_id, author, pulled_to)
    select u.* from unnest(user_id, author, pulled_to) u (user_id, author, pulled_to) order by u.user_id, u.author
    on conflict do nothing;
end
$$;

-- Removes unread and read posts of authors from inboxes: their numbers count as consumed.
create function hotrow.purge_posts(user_id bigint[], author bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    locked record;
    gone record;
    settled record;
begin
    locked := hotrow.lock_readers(user_id);
    for gone in
        with deleted as (
            delete from hotrow.inbox_entry e using unnest(purge_posts.user_id, purge_posts.author) u (user_id, author)
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

-- Refuses pairs that are not complete.
create function hotrow.check_pairs(user_id bigint[], other bigint[], name text) returns void
language plpgsql as $$
begin
    perform hotrow.check_batch(
        cardinality(user_id), array_upper(user_id, 1), cardinality(other), array_upper(other, 1));
    if array_position(user_id, null) > 0 then
        perform hotrow.null_argument('user_id');
    elsif array_position(other, null) > 0 then
        perform hotrow.null_argument(name);
    end if;
end
$$;

-- Returns which calls are the first of the pairs that were inserted or deleted. They are joined by hash, because a thousand
-- calls meet a thousand pairs. The callers of this function forbid hash joins for themselves, because a hash join reads a
-- table as a whole.
create function hotrow.first_calls(user_id bigint[], other bigint[], users bigint[], others bigint[]) returns boolean[]
language plpgsql set enable_hashjoin = on set enable_nestloop = off as $$
#variable_conflict use_column
begin
    return array(
        select p.other is not null and row_number() over (partition by u.user_id, u.other order by u.call) = 1
        from unnest(user_id, other) with ordinality u (user_id, other, call)
        left join unnest(users, others) p (user_id, other) on p.user_id = u.user_id and p.other = u.other
        order by u.call);
end
$$;

create function hotrow.follow_batch(user_id bigint[], followee bigint[], backfill int[] default null)
returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(user_id);
    users bigint[];
    authors bigint[];
    fresh boolean[];
    back record;
begin
    perform hotrow.check_pairs(user_id, followee, 'followee');
    perform hotrow.check_batch(calls, coalesce(cardinality(backfill), calls), coalesce(array_upper(backfill, 1), calls));
    backfill := coalesce(backfill, array_fill(20, array[calls]));
    if array_position(backfill, null) > 0 then
        perform hotrow.null_argument('backfill');
    elsif 0 > any (backfill) or 1000 < any (backfill) then
        perform hotrow.bad_argument('backfill is below 0 or above 1000', 'Fill in 0 to 1000 of the newest posts.');
    end if;
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
    if users is not null then
        update hotrow.author a set followers = a.followers + u.followers
        from (select u.author, count(*) as followers from unnest(authors) u (author) group by u.author) u
        where a.author = any (array[u.author]);
        select array_agg(u.user_id) as users, array_agg(u.author) as authors, array_agg(a.last_post) as last
        into back from unnest(users, authors) u (user_id, author)
        cross join lateral (select a.last_post from hotrow.author a
            where a.author = any (array[u.author]) and a.pulled_from is not null) a;
        -- Every follower has a reader and an inbox. Fan-out therefore makes neither, and never waits for a transaction that
        -- makes one.
        insert into hotrow.reader (user_id)
        select distinct u.user_id from unnest(users) u (user_id) order by u.user_id on conflict do nothing;
        if back.users is not null then
            perform hotrow.start_pulling(back.users, back.authors, back.last);
        end if;
        insert into hotrow.inbox (user_id, last)
        select distinct u.user_id, 0 from unnest(users) u (user_id) order by u.user_id on conflict do nothing;
        -- The newest earlier posts, oldest first.
        select array_agg(u.user_id order by u.call, p.post_id) as users,
            array_agg(u.author order by u.call, p.post_id) as authors, array_agg(p.post_id order by u.call, p.post_id) as posts
        into back from unnest(user_id, followee, backfill, fresh) with ordinality u (user_id, author, backfill, fresh, call)
        cross join lateral (
            select p.post_id from hotrow.post p where u.fresh and p.author = u.author
            order by p.post_id desc limit u.backfill) p;
        if back.users is not null then
            perform hotrow.write_entries(back.users, back.authors, back.posts, null, null, true);
        end if;
    end if;
    -- The first call of a new pair has inserted it; the calls after it find it there.
    return query
        select case when u.user_id = u.followee then 'self' when u.fresh then 'followed' else 'already' end
        from unnest(user_id, followee, fresh) with ordinality u (user_id, followee, fresh, call) order by u.call;
end
$$;

create function hotrow.follow(user_id bigint, followee bigint, backfill int default 20, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    select b.status into follow.status
    from hotrow.follow_batch(array[follow.user_id], array[followee], array[backfill]) b;
end
$$;

create function hotrow.unfollow_batch(user_id bigint[], followee bigint[]) returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    users bigint[];
    authors bigint[];
begin
    perform hotrow.check_pairs(user_id, followee, 'followee');
    perform a.author from unnest(array(select distinct u from unnest(followee) u order by u)) u (author)
    cross join lateral (select a.author from hotrow.author a where a.author = u.author for update) a;
    with gone as (
        delete from hotrow.follow f using unnest(unfollow_batch.user_id, followee) u (user_id, author)
        where f.user_id = u.user_id and f.author = any (array[u.author]) returning f.user_id, f.author)
    select array_agg(g.user_id order by g.author, g.user_id), array_agg(g.author order by g.author, g.user_id)
    into users, authors from gone g;
    if users is not null then
        update hotrow.author a set followers = a.followers - u.followers
        from (select u.author, count(*) as followers from unnest(authors) u (author) group by u.author) u
        where a.author = any (array[u.author]);
        -- First merges the posts that are still to come, because they are removed with the rest.
        perform hotrow.purge_posts(users, authors);
        delete from hotrow.pull l using unnest(users, authors) u (user_id, author)
        where l.user_id = any (array[u.user_id]) and l.author = u.author;
    end if;
    return query
        select case when u.gone then 'unfollowed' else 'not_following' end
        from unnest(hotrow.first_calls(user_id, followee, users, authors)) with ordinality u (gone, call) order by u.call;
end
$$;

create function hotrow.unfollow(user_id bigint, followee bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    select b.status into unfollow.status from hotrow.unfollow_batch(array[unfollow.user_id], array[followee]) b;
end
$$;

-- Mutes and unmutes authors. Posts of a muted author do not come, including posts not yet brought. Entries in the inbox stay.
create function hotrow.mute(user_id bigint, followee bigint, muted boolean default true, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    entry hotrow.author;
    was_muted boolean;
begin
    if user_id is null or followee is null or muted is null then
        perform hotrow.null_argument('user_id, followee or muted');
    end if;
    select a.* into entry from hotrow.author a where a.author = followee for update;
    select f.muted into was_muted from hotrow.follow f where f.author = followee and f.user_id = mute.user_id for update;
    if not found then
        status := 'not_following';
        return;
    end if;
    status := case when muted then 'muted' else 'unmuted' end;
    if muted = was_muted then
        return; -- posts that are on their way to a follower who is not muted must arrive
    end if;
    -- Posts from the muted time can still be on their way when the author is unmuted: since_post keeps them away.
    update hotrow.follow f set muted = mute.muted,
        since_post = case when not mute.muted then entry.last_post else f.since_post end
    where f.author = followee and f.user_id = mute.user_id;
    if entry.pulled_from is not null then
        if muted then
            -- Posts from before this call still come.
            perform hotrow.lock_readers(array[mute.user_id]);
            delete from hotrow.pull l where l.user_id = mute.user_id and l.author = followee;
        else
            perform hotrow.start_pulling(array[mute.user_id], array[followee], array[entry.last_post]);
        end if;
    end if;
end
$$;
