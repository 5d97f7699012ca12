-- post, and how posts reach the inboxes of those who follow: at once, by fan_out in chunks, or when they read.

-- Writes posts and brings them to the followers of authors who have few. Authors of many get a row of hotrow.fan_out for
-- each post, and those of very many none, once all their followers know that they come for the posts themselves.
create function hotrow.write_posts(author bigint[], content text[]) returns bigint[]
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    setting hotrow.setting := (select s from hotrow.setting s where s.one);
    present timestamptz;
    numbers bigint[];
    now_posts bigint[];
    now_authors bigint[];
    bring record;
begin
    insert into hotrow.author as a (author, last_post)
    select u.author, count(*) from unnest(write_posts.author) u (author) group by u.author order by u.author
    on conflict (author) do update set last_post = a.last_post + excluded.last_post;
    present := clock_timestamp();
    -- Those who have become too big for fan-out: this post is the last that brings, and tells the followers.
    update hotrow.author a set marking = true
    where a.author = any (write_posts.author) and a.pulled_from is null and not a.marking
        and a.followers > setting.feed_pull_above;
    with wanted as materialized (
        select u.author, u.content, u.call, a.last_post - u.posts + u.nth as post_id, a.followers, a.marking, u.nth,
            a.pulled_from is not null as pulled,
            exists (select from hotrow.fan_out f where f.author = any (array[u.author])) as under_way
        from (
            select u.*, row_number() over (partition by u.author order by u.call) as nth,
                count(*) over (partition by u.author) as posts
            from unnest(author, content) with ordinality u (author, content, call)) u
        cross join lateral (select a.* from hotrow.author a where a.author = any (array[u.author])) a
    ), written as (
        insert into hotrow.post (author, post_id, at, content)
        select w.author, w.post_id, present, w.content from wanted w
    ), later as (
        insert into hotrow.fan_out (author, post_id, marks, at)
        select w.author, w.post_id, w.marking, present from wanted w
        where not w.pulled and (w.marking or w.under_way or w.followers > setting.feed_inline))
    select array_agg(w.post_id order by w.call),
        array_agg(w.author order by w.call) filter (where w.now), array_agg(w.post_id order by w.call) filter (where w.now)
    into numbers, now_authors, now_posts
    from (select w.*, not (w.pulled or w.marking or w.under_way or w.followers > setting.feed_inline) and w.followers > 0 as now
        from wanted w) w;
    if now_authors is not null then
        -- Each inbox gets them in the order in which they were posted, whatever the plan.
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

-- Brings one post to at most so many followers more, and says to how many it came; 0: nothing is left that nobody else is
-- busy with. Call it until it returns 0. Where it has come to is written in the same transaction, so that a crash neither
-- leaves out anybody nor brings anything twice. An author's posts go out one after another: each inbox has them in order.
create function hotrow.fan_out(most int default 1000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    job hotrow.fan_out;
    looked record;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Bring a post to 1 to 10000 followers at a time.');
    end if;
    loop
        select f.* into job from hotrow.fan_out f
        where not exists (select from hotrow.fan_out o where o.author = any (array[f.author]) and o.post_id < f.post_id)
        order by f.at, f.author, f.post_id limit 1 for update skip locked;
        if not found then
            return 0;
        end if;
        -- Nobody comes or goes as a follower meanwhile.
        perform from hotrow.author a where a.author = job.author for update;
        select max(f.user_id) as last, count(*) as followers,
            array_agg(f.user_id) filter (where f.since_post < job.post_id and not f.muted) as users,
            array_agg(f.user_id) filter (where not f.muted) as readers
        into looked from (
            select f.* from hotrow.follow f where f.author = job.author and f.user_id >= job.next_user
            order by f.user_id limit most) f;
        if job.marks and looked.readers is not null then
            perform hotrow.start_pulling(looked.readers, array_fill(job.author, array[cardinality(looked.readers)]),
                array_fill(0::bigint, array[cardinality(looked.readers)]));
        end if;
        if looked.users is not null then
            perform hotrow.write_entries(looked.users, array_fill(job.author, array[cardinality(looked.users)]),
                array_fill(job.post_id, array[cardinality(looked.users)]), null, null, true);
        end if;
        if looked.followers < most then
            delete from hotrow.fan_out f where f.author = job.author and f.post_id = job.post_id;
            if job.marks then
                update hotrow.author a set marking = false, pulled_from = a.last_post + 1
                where a.author = job.author and a.marking;
            end if;
        else
            update hotrow.fan_out f set next_user = looked.last + 1, at = clock_timestamp()
            where f.author = job.author and f.post_id = job.post_id;
        end if;
        if looked.users is not null then
            return cardinality(looked.users);
        end if;
    end loop;
end
$$;
