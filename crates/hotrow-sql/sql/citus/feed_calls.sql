-- The functions of feeds of a distributed pack that need more than one shard. Each replaces the function of the migrations with
-- the same head. The parts that run on one node are in feed_shard.sql, and feed_parts.sql calls them.

create or replace function hotrow.follow_batch(user_id bigint[], followee bigint[], backfill int[] default null)
returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(user_id);
    one int;
    places int[];
    part record;
    fresh boolean[];
    authors bigint[] := '{}';
    posts bigint[] := '{}';
    at timestamptz[] := '{}';
    content text[] := '{}';
begin
    perform hotrow.check_pairs(user_id, followee, 'followee');
    perform hotrow.check_batch(calls, coalesce(cardinality(backfill), calls), coalesce(array_upper(backfill, 1), calls));
    backfill := coalesce(backfill, array_fill(20, array[calls]));
    if array_position(backfill, null) > 0 then
        perform hotrow.null_argument('backfill');
    elsif 0 > any (backfill) or 1000 < any (backfill) then
        perform hotrow.bad_argument('backfill is below 0 or above 1000', 'Fill in 0 to 1000 of the newest posts.');
    end if;
    -- From 1 on, also if the first calls are of users that follow themselves: their places are in no shard's part.
    fresh := array_fill(false, array[calls]);
    foreach one in array hotrow.shards_of(array(select u.b from unnest(user_id, followee) u (a, b) where u.a <> u.b)) loop
        places := array(select u.place from unnest(followee) with ordinality u (author, place)
            where hotrow.shard_of(u.author) = one order by u.place);
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.begin_following($1, $2, $3) f', one) into part
        using array(select follow_batch.user_id[p] from unnest(places) with ordinality p (p, n) order by n),
            array(select followee[p] from unnest(places) with ordinality p (p, n) order by n),
            array(select backfill[p] from unnest(places) with ordinality p (p, n) order by n);
        for i in 1 .. cardinality(places) loop
            fresh[places[i]] := part.fresh[i];
        end loop;
        authors := authors || part.author;
        posts := posts || part.post_id;
        at := at || part.at;
        content := content || part.content;
    end loop;
    perform hotrow.end_following(user_id, followee, backfill, fresh, authors, posts, at, content);
    -- The first call of a new pair has inserted it; the calls after it find it there.
    return query
        select case when u.user_id = u.followee then 'self' when fresh[u.call] then 'followed' else 'already' end
        from unnest(user_id, followee) with ordinality u (user_id, followee, call) order by u.call;
end
$$;

create or replace function hotrow.follow(user_id bigint, followee bigint, backfill int default 20, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    select b.status into follow.status
    from hotrow.follow_batch(array[follow.user_id], array[followee], array[backfill]) b;
end
$$;

create or replace function hotrow.unfollow_batch(user_id bigint[], followee bigint[]) returns table (status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    one int;
    places int[];
    part boolean[];
    gone boolean[] := '{}';
begin
    perform hotrow.check_pairs(user_id, followee, 'followee');
    foreach one in array hotrow.shards_of(followee) loop
        places := array(select u.place from unnest(followee) with ordinality u (author, place)
            where hotrow.shard_of(u.author) = one order by u.place);
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.begin_unfollowing($1, $2) f', one) into part
        using array(select unfollow_batch.user_id[p] from unnest(places) with ordinality p (p, n) order by n),
            array(select followee[p] from unnest(places) with ordinality p (p, n) order by n);
        for i in 1 .. cardinality(places) loop
            gone[places[i]] := part[i];
        end loop;
    end loop;
    foreach one in array hotrow.shards_of(user_id) loop
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.purge_copies($1, $2) f', one)
        using array(select u.u from unnest(user_id) with ordinality u (u, n) where hotrow.shard_of(u.u) = one order by u.n),
            array(select u.a from unnest(user_id, followee) with ordinality u (u, a, n)
                where hotrow.shard_of(u.u) = one order by u.n);
    end loop;
    return query
        select case when gone[u.call] then 'unfollowed' else 'not_following' end
        from unnest(user_id) with ordinality u (user_id, call) order by u.call;
end
$$;

create or replace function hotrow.unfollow(user_id bigint, followee bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    select b.status into unfollow.status from hotrow.unfollow_batch(array[unfollow.user_id], array[followee]) b;
end
$$;

-- Brings posts of the author that has waited longest, in whichever shard, to more followers.
--
-- A post on its way and the inboxes that it reaches are on several nodes, and all that one call changes is one transaction, which
-- Citus commits in two phases. So the progress of the post and the entries of the inboxes are either all written or all not,
-- also if a node or this one crashes: a prepared part is committed or rolled back when the nodes are back.
--
-- The nodes commit one after another, so another transaction can see one part before the other. This is harmless, because each
-- part keeps its locks until its own commit. If the author's part has committed first, another call can take the author's next
-- posts. It finds the inboxes of this call locked, and waits for them or leaves these followers out, so an inbox gets the posts
-- of an author in order, each once. If the inboxes' parts have committed first, the author is still locked, and other calls skip
-- it.
--
-- Several calls can run at once, on any node. They wait for the author that has waited longest before they have a lock, for no
-- other author, and for an inbox at most for the lock timeout of hotrow_shard_N.deliver: a circle of transactions that wait for
-- each other ends here, not at a caller.
create or replace function hotrow.fan_out(most int default 1000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set lock_timeout = '100ms' as $$
#variable_conflict use_column
declare
    one int;
    part record;
    authors bigint[] := '{}';
    times timestamptz[] := '{}';
    next bigint;
    dealt_with bigint;
    waits boolean := true;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Bring a post to 1 to 10000 followers at a time.');
    end if;
    foreach one in array hotrow.shards() loop
        begin
            execute format('select array_agg(t.author) as authors, array_agg(t.at) as times from hotrow_shard_%1$s.gate g'
                ' cross join lateral hotrow_shard_%1$s.turns() t', one) into part;
            authors := authors || part.authors;
            times := times || part.times;
        exception
            when others then
                raise warning using message = format('hotrow.fan_out, shard %s: %s', one, sqlerrm),
                    hint = 'Posts of the other shards'' authors are still delivered.';
        end;
    end loop;
    for next in select u.author from unnest(authors, times) u (author, at) order by u.at, u.author limit 100 loop
        dealt_with := null;
        begin
            dealt_with := hotrow.take_turn(next, most, waits);
        exception
            -- The author is locked, or its shard is on its way to another node.
            when lock_not_available then
                null;
            when others then
                raise warning using message = format('hotrow.fan_out, author %s: %s', next, sqlerrm),
                    hint = 'Posts of other authors are still delivered. Posts of this author are retried.';
        end;
        if dealt_with > 0 then
            return dealt_with;
        end if;
        waits := false;
    end loop;
    return 0;
end
$$;

create or replace function hotrow.trim_feeds(most int default 1000, out entries bigint, out posts bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set lock_timeout = '10ms' as $$
#variable_conflict use_column
declare
    one int;
    part record;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Look at 1 to 10000 inboxes at a time.');
    end if;
    entries := 0;
    posts := 0;
    foreach one in array hotrow.shards() loop
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.trim_feeds($1) f', one)
        into part using greatest(most / cardinality(hotrow.shards()), 1);
        entries := entries + part.entries;
        posts := posts + part.posts;
    end loop;
end
$$;

create or replace function hotrow.feed_stats()
returns table (posts_queued bigint, waiting_since timestamptz, followers_left bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one int;
    part record;
begin
    posts_queued := 0;
    followers_left := 0;
    foreach one in array hotrow.shards() loop
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.feed_stats() f', one)
        into part;
        posts_queued := least(posts_queued + part.posts_queued, 10000);
        waiting_since := least(waiting_since, part.waiting_since);
        followers_left := least(followers_left + part.followers_left, 10000);
    end loop;
    return next;
end
$$;
