-- The steps of calls of feeds that need several shards (feed_calls.sql). Runs each time, before the functions that clients call
-- are created again.

-- The shards of these users, in order. A call enters them in this order, so two calls wait for each other in one direction only.
create or replace function hotrow.shards_of(users bigint[]) returns int[]
language sql immutable as $$
    select array(select distinct hotrow.shard_of(u.u) from unnest(users) u (u) order by 1)
$$;

-- The readers' side of follow: for the calls that made a new pair, the newest of these posts go to the follower, oldest first.
create or replace function hotrow.end_following(user_id bigint[], followee bigint[], backfill int[], fresh boolean[],
    authors bigint[], posts bigint[], at timestamptz[], content text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_hashjoin = on as $$
#variable_conflict use_column
declare
    one int;
    followers bigint[] := array(
        select u.user_id from unnest(user_id, followee) with ordinality u (user_id, followee, call)
        where u.user_id <> u.followee order by u.call);
    pairs record;
    used record;
begin
    foreach one in array hotrow.shards_of(followers) loop
        select coalesce(array_agg(w.user_id order by w.call, w.post_id), '{}') as users,
            coalesce(array_agg(w.author order by w.call, w.post_id), '{}') as authors,
            coalesce(array_agg(w.post_id order by w.call, w.post_id), '{}') as posts
        into pairs from (
            select u.user_id, u.author, u.call, u.backfill, p.post_id, p.place
            from unnest(user_id, followee, backfill, fresh) with ordinality u (user_id, author, backfill, fresh, call)
            join (
                select p.author, p.post_id, row_number() over (partition by p.author order by p.post_id desc) as place
                from unnest(authors, posts) p (author, post_id)) p on p.author = u.author
            where u.fresh and hotrow.shard_of(u.user_id) = one) w
        where w.place <= w.backfill;
        -- Only the posts that this shard needs.
        select array_agg(p.author) as authors, array_agg(p.post_id) as posts, array_agg(p.at) as at,
            array_agg(p.content) as content
        into used from unnest(authors, posts, end_following.at, end_following.content) p (author, post_id, at, content)
        join (select distinct w.author, w.post_id from unnest(pairs.authors, pairs.posts) w (author, post_id)) w
            on w.author = p.author and w.post_id = p.post_id;
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.end_following($1, $2, $3, $4, $5, $6, $7, $8) f', one)
        using array(select u.u from unnest(followers) u (u) where hotrow.shard_of(u.u) = one), pairs.users, pairs.authors,
            pairs.posts, used.authors, used.posts, used.at, used.content;
    end loop;
end
$$;

-- Gives posts to the shards of the readers, in their order. Returns the users that could not get them now.
create or replace function hotrow.deliver(author bigint, user_id bigint[], post_id bigint[], posts bigint[], at timestamptz[],
    content text[]) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    one int;
    pairs record;
    here bigint[];
    missed bigint[] := '{}';
begin
    foreach one in array hotrow.shards_of(user_id) loop
        select array_agg(u.user_id order by u.place) as users, array_agg(u.post_id order by u.place) as posts into pairs
        from unnest(user_id, post_id) with ordinality u (user_id, post_id, place) where hotrow.shard_of(u.user_id) = one;
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.deliver($1, $2, $3, $4, $5, $6) f', one) into here
        using deliver.author, pairs.users, pairs.posts, posts, at, content;
        missed := missed || here;
    end loop;
    return missed;
end
$$;

-- The turn of one author: first the followers that were left out before, then the next ones. Returns how many followers it has
-- dealt with; NULL if another call has the author. If the posts fail, the author still goes to the end of the line.
create or replace function hotrow.take_turn(author bigint, most int, waits boolean) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    home int := hotrow.shard_of(take_turn.author);
    waiting bigint[];
    taken record;
begin
    perform hotrow.enter_shard(home);
    execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.begin_turn($1, $2, $3) f', home)
    into waiting using take_turn.author, most, waits;
    if waiting is null then
        return null;
    end if;
    begin
        select f.* into taken from hotrow.bring_posts(take_turn.author, most, home, waiting) f;
    exception
        when lock_not_available then
            select 0 as dealt_with, null::bigint as post_id, null::bigint[] as missed into taken;
        when others then
            select 0 as dealt_with, null::bigint as post_id, null::bigint[] as missed into taken;
            raise warning using message = format('hotrow.fan_out, author %s: %s', take_turn.author, sqlerrm),
                hint = 'Posts of other authors are still delivered. Posts of this author are retried.';
    end;
    execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.end_turn($1, $2, $3) f', home)
    using take_turn.author, taken.post_id, taken.missed;
    return taken.dealt_with;
end
$$;

-- Brings posts of an author whose turn has begun. Returns how many followers it has dealt with, and of these the ones that have
-- not got this post.
create or replace function hotrow.bring_posts(author bigint, most int, home int, waiting bigint[],
    out dealt_with bigint, out post_id bigint, out missed bigint[])
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    one int;
    here bigint[];
    free bigint[] := '{}';
    taken record;
begin
    foreach one in array hotrow.shards_of(waiting) loop
        perform hotrow.enter_shard(one);
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.free_inboxes($1) f', one)
        into here using array(select u.u from unnest(waiting) u (u) where hotrow.shard_of(u.u) = one);
        free := free || here;
    end loop;
    if cardinality(free) > 0 then
        execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral'
            ' hotrow_shard_%1$s.take_left($1, $2, $3) f', home)
        into taken using bring_posts.author, free, most;
        if taken.user_id is not null then
            -- Their inboxes are locked already.
            perform hotrow.deliver(bring_posts.author, taken.user_id, taken.post_id, taken.posts, taken.at, taken.content);
            dealt_with := cardinality(taken.user_id);
            return;
        end if;
    end if;
    execute format('select f.* from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.take_chunk($1, $2) f', home)
    into taken using bring_posts.author, most;
    dealt_with := taken.dealt_with;
    if cardinality(taken.user_id) > 0 then
        post_id := taken.post_id;
        missed := hotrow.deliver(bring_posts.author, taken.user_id, array_fill(post_id, array[cardinality(taken.user_id)]),
            array[post_id], array[taken.at], array[taken.content]);
    end if;
end
$$;

-- Refuses a call that changes functions of all nodes, on a node that cannot do so.
create or replace function hotrow.check_coordinator(function text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from pg_dist_local_group g where g.groupid <> 0) then
        raise exception using errcode = '0A000',
            message = format('hotrow.%s was called on a worker', function),
            hint = 'In a distributed hotrow schema, call this function on the coordinator.';
    end if;
end
$$;

-- Gives the shards a ranking that is registered here.
create or replace function hotrow.share_ranking(ranking text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    one int;
    registered hotrow.ranking;
begin
    select r.* into registered from hotrow.ranking r where r.ranking = share_ranking.ranking;
    perform create_distributed_function(format('hotrow.%I(bigint, bigint, timestamptz, text)',
        hotrow.ranking_name(share_ranking.ranking))::regprocedure);
    foreach one in array hotrow.shards() loop
        execute format('insert into hotrow_shard_%s.ranking as r (ranking, function) values ($1, $2)'
            ' on conflict (ranking) do update set function = excluded.function', one)
        using registered.ranking, registered.function;
    end loop;
end
$$;
