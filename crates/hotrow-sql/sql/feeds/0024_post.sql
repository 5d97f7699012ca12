-- post, and how posts reach the inboxes of followers: at once, by fan_out in chunks, or when they read.

-- Writes posts and brings them to the followers of authors that have few. If an author has many, each post gets a row of
-- hotrow.fan_out. If an author has very many, posts get no row any more, after one last post that makes each follower fetch the
-- posts after it.
create function hotrow.write_posts(author bigint[], content text[]) returns bigint[]
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    setting hotrow.setting := (select s from hotrow.setting s where s.one);
    present timestamptz;
    numbers bigint[];
    now_posts bigint[];
    now_authors bigint[];
    later_authors bigint[];
    bring record;
begin
    insert into hotrow.author as a (author, last_post)
    select u.author, count(*) from unnest(write_posts.author) u (author) group by u.author order by u.author
    on conflict (author) do update set last_post = a.last_post + excluded.last_post;
    present := clock_timestamp();
    -- Authors that have become too big for fan-out: the first of these posts is the last that is brought. A follower gets its
    -- row of hotrow.pull together with that post, and so fetches no newer post before it.
    update hotrow.author a set pulled_from = a.last_post - u.posts + 2
    from (select u.author, count(*) as posts from unnest(write_posts.author) u (author) group by u.author) u
    where a.author = any (array[u.author]) and a.pulled_from is null and a.followers > setting.feed_pull_above;
    with wanted as materialized (
        select w.*, coalesce(w.post_id < w.pulled_from, true) as brought,
            coalesce(w.post_id = w.pulled_from - 1, false) or w.followers > setting.feed_inline
                or exists (select from hotrow.fan_out_turn t where t.author = any (array[w.author])) as later
        from (
            select u.author, u.content, u.call, a.last_post - u.posts + u.nth as post_id, a.followers, a.pulled_from
            from (
                select u.*, row_number() over (partition by u.author order by u.call) as nth,
                    count(*) over (partition by u.author) as posts
                from unnest(author, content) with ordinality u (author, content, call)) u
            cross join lateral (select a.* from hotrow.author a where a.author = any (array[u.author])) a) w
    ), written as (
        insert into hotrow.post (author, post_id, at, content)
        select w.author, w.post_id, present, w.content from wanted w
    ), later as (
        insert into hotrow.fan_out (author, post_id)
        select w.author, w.post_id from wanted w where w.brought and w.later)
    select array_agg(w.post_id order by w.call),
        array_agg(w.author order by w.call) filter (where w.brought and w.later),
        array_agg(w.author order by w.call) filter (where w.brought and not w.later and w.followers > 0),
        array_agg(w.post_id order by w.call) filter (where w.brought and not w.later and w.followers > 0)
    into numbers, later_authors, now_authors, now_posts from wanted w;
    if later_authors is not null then
        insert into hotrow.fan_out_turn (author, at)
        select distinct u.author, present from unnest(later_authors) u (author) on conflict do nothing;
    end if;
    if now_authors is not null then
        -- Each inbox gets the posts in the order in which they were posted, whatever the plan is.
        select array_agg(u.user_id) as users, array_agg(u.author) as authors, array_agg(u.post_id) as posts into bring from (
            select f.user_id, u.author, u.post_id from unnest(now_authors, now_posts) with ordinality u (author, post_id, place)
            cross join lateral (select f.user_id from hotrow.follow f where f.author = any (array[u.author]) and not f.muted) f
            order by u.place) u;
        if bring.users is not null then
            perform hotrow.write_entries(bring.users, bring.authors, bring.posts, null, null, true);
        end if;
    end if;
    return numbers;
end
$$;

create function hotrow.post_batch(author bigint[], content text[], request_id uuid[] default null)
returns table (post_id bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    calls int := cardinality(author);
    numbers bigint[];
begin
    perform hotrow.check_batch(calls, array_upper(author, 1), cardinality(content), array_upper(content, 1),
        cardinality(request_id), array_upper(request_id, 1));
    if array_position(author, null) > 0 then
        perform hotrow.null_argument('author');
    end if;
    perform hotrow.check_content(content);
    if calls = 0 then
        return;
    elsif num_nonnulls(variadic request_id) > 0 then
        numbers := hotrow.write_once('post', null, author, content, null, request_id);
    else
        numbers := hotrow.write_posts(author, content);
    end if;
    return query select u, 'ok'::text from unnest(numbers) u;
end
$$;

create function hotrow.post(
    author bigint, content text, request_id uuid default null, out post_id bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    select b.post_id, b.status into post.post_id, post.status
    from hotrow.post_batch(array[post.author], array[post.content], array[post.request_id]) b;
end
$$;

-- Brings posts of one author to followers: pairs, in the order of each follower's posts. A pair counts if the user follows, is
-- not muted, and has followed since before the post. Returns how many pairs counted. The caller holds the author's lock, so no
-- follower is added or removed meanwhile.
create function hotrow.bring(author bigint, user_id bigint[], post_id bigint[]) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    last_brought bigint := (select a.pulled_from - 1 from hotrow.author a where a.author = any (array[bring.author]));
    wanted record;
begin
    select array_agg(u.user_id order by u.place) as users, array_agg(u.post_id order by u.place) as posts,
        array_agg(u.user_id) filter (where u.post_id = last_brought) as fetching
    into wanted from unnest(user_id, post_id) with ordinality u (user_id, post_id, place)
    cross join lateral (
        select from hotrow.follow f where f.author = any (array[bring.author]) and f.user_id = u.user_id
            and f.since_post < u.post_id and not f.muted) f;
    if wanted.fetching is not null then
        -- Users that followed or unmuted after that post fetch the posts already.
        perform hotrow.start_pulling(wanted.fetching, array_fill(bring.author, array[cardinality(wanted.fetching)]),
            array_fill(0::bigint, array[cardinality(wanted.fetching)]));
    end if;
    if wanted.users is null then
        return 0;
    end if;
    perform hotrow.write_entries(wanted.users, array_fill(bring.author, array[cardinality(wanted.users)]), wanted.posts,
        null, null, true);
    return cardinality(wanted.users);
end
$$;

-- Returns the followers whose reader and inbox no other transaction has locked. Both are locked now.
create function hotrow.lock_free(user_id bigint[]) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
    free bigint[];
begin
    free := array(
        select r.user_id from hotrow.reader r where r.user_id = any (lock_free.user_id)
        order by r.user_id for update skip locked);
    return array(
        select i.user_id from hotrow.inbox i where i.user_id = any (free) order by i.user_id for update skip locked);
end
$$;

-- Brings the posts that were left out before to the first followers, `most` at most, that are not locked now.
create function hotrow.bring_left(author bigint, most int) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    waiting bigint[];
    free record;
begin
    -- Goes from each user to the next, however many posts each of them has.
    with recursive u (user_id) as (
        (select l.user_id from hotrow.fan_out_left l where l.author = bring_left.author order by l.user_id limit 1)
        union all
        select n.user_id from u cross join lateral (
            select l.user_id from hotrow.fan_out_left l
            where l.author = bring_left.author and l.user_id > u.user_id order by l.user_id limit 1) n)
    select array_agg(w.user_id) into waiting from (select u.user_id from u limit most) w;
    if waiting is null then
        return 0;
    end if;
    waiting := hotrow.lock_free(waiting);
    select array_agg(w.user_id order by w.post_id, w.user_id) as users, array_agg(w.post_id order by w.post_id, w.user_id) as posts
    into free from (
        select u.user_id, o.post_id from unnest(waiting) u (user_id)
        cross join lateral (
            select l.post_id from hotrow.fan_out_left l
            where l.author = bring_left.author and l.user_id = u.user_id order by l.post_id limit most) o
        limit most) w;
    if free.users is null then
        return 0;
    end if;
    delete from hotrow.fan_out_left l using unnest(free.users, free.posts) u (user_id, post_id)
    where l.author = bring_left.author and l.user_id = any (array[u.user_id]) and l.post_id = any (array[u.post_id]);
    return hotrow.bring(author, free.users, free.posts);
end
$$;

-- Brings the next posts of one author, in their order, until a follower has got one or none is left, and returns how many
-- followers it has dealt with. The progress of a post is written in the same transaction, so a crash neither leaves out a
-- follower nor brings a post twice. The caller holds the author's lock.
create function hotrow.bring_next(author bigint, most int) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    job hotrow.fan_out;
    looked record;
    free bigint[];
    post bigint[];
    dealt_with bigint := hotrow.bring_left(author, most);
begin
    while dealt_with = 0 loop
        select f.* into job from hotrow.fan_out f where f.author = bring_next.author order by f.post_id limit 1;
        exit when not found;
        select array_agg(f.user_id) as users, max(f.user_id) as last, coalesce(array_agg(f.user_id) filter (where not exists (
            select from hotrow.fan_out_left l where l.author = bring_next.author and l.user_id = any (array[f.user_id]))), '{}') as free
        into looked from (
            select f.user_id from hotrow.follow f where f.author = bring_next.author and f.user_id >= job.next_user
            order by f.user_id limit most) f;
        if looked.users is not null then
            free := looked.free;
            post := array_fill(job.post_id, array[cardinality(free)]);
            begin
                dealt_with := hotrow.bring(author, free, post);
            exception
                when lock_not_available then
                    -- If a transaction keeps some of the inboxes or readers locked, the other followers do not wait for it.
                    free := hotrow.lock_free(free);
                    dealt_with := hotrow.bring(author, free, post[:cardinality(free)]);
            end;
            if cardinality(free) < cardinality(looked.users) then
                insert into hotrow.fan_out_left (author, user_id, post_id)
                select bring_next.author, u.user_id, job.post_id
                from (select unnest(looked.users) except select unnest(free)) u (user_id);
                dealt_with := dealt_with + cardinality(looked.users) - cardinality(free);
            end if;
        end if;
        if cardinality(looked.users) = most and looked.last < 9223372036854775807 then
            update hotrow.fan_out f set next_user = looked.last + 1
            where f.author = bring_next.author and f.post_id = job.post_id;
        else
            delete from hotrow.fan_out f where f.author = bring_next.author and f.post_id = job.post_id;
        end if;
    end loop;
    return dealt_with;
end
$$;

-- Brings posts of the author that has waited longest to more followers, `most` at most, and returns how many followers it has
-- dealt with; 0: nothing is left, except what other sessions are busy with. Call it until it returns 0.
--
-- A transaction that is left open holds up only what it has locked. An author is skipped while its row is locked. A follower
-- whose inbox or reader stays locked is left out and gets the post later. An author whose posts fail goes to the end of the
-- line. So fan-out does not wait for authors at all, and for an inbox or a reader at most as long as the lock timeout. That is
-- shorter than any deadlock_timeout: a circle of transactions that wait for each other ends here, not at a caller.
create function hotrow.fan_out(most int default 1000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set lock_timeout = '100ms' as $$
#variable_conflict use_column
declare
    next bigint;
    dealt_with bigint;
    fruitless int := 0;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Bring a post to 1 to 10000 followers at a time.');
    end if;
    for next in select t.author from hotrow.fan_out_turn t order by t.at, t.author loop
        perform from hotrow.author a where a.author = next for update skip locked;
        continue when not found;
        begin
            dealt_with := hotrow.bring_next(next, most);
        exception
            when lock_not_available then
                dealt_with := 0;
            when others then
                dealt_with := 0;
                raise warning using message = format('hotrow.fan_out, author %s: %s', next, sqlerrm),
                    hint = 'Posts of other authors are still delivered. Posts of this author are retried.';
        end;
        if exists (select from hotrow.fan_out f where f.author = next)
            or exists (select from hotrow.fan_out_left l where l.author = next)
        then
            update hotrow.fan_out_turn t set at = clock_timestamp() where t.author = next;
            fruitless := fruitless + 1;
        else
            delete from hotrow.fan_out_turn t where t.author = next;
        end if;
        if dealt_with > 0 then
            return dealt_with;
        end if;
        -- The authors tried are at the end of the line now, and the next call begins with others.
        exit when fruitless = 100;
    end loop;
    return 0;
end
$$;
