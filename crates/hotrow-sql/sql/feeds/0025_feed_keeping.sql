-- Deletes old entries of inboxes and old posts. Writers keep inboxes to their length.

-- The place where the next sweep continues, in the newest row. A call adds a row and locks none, so a transaction that is left
-- open blocks no other call. Two calls at once begin with the same inboxes, and the second skips those that are locked.
create table hotrow.feed_sweep (
    number bigint {{one}}generated always as identity primary key{{many}}not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint{{end}},
    next_user bigint not null,
    next_author bigint not null
);

-- Deletes the entries of one inbox that are older than this time, and returns how many. Newer entries stay, whatever their
-- place. Does nothing while another transaction has the reader locked.
create function hotrow.forget_entries(user_id bigint, old timestamptz) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    numbers int8multirange;
    reader hotrow.reader;
    settled record;
    forgotten bigint;
begin
    -- A reference is as old as its post. A post that no longer exists was old.
    numbers := (
        select range_agg(int8range(e.number, e.number + 1)) from hotrow.inbox_entry e
        where e.user_id = forget_entries.user_id and coalesce(e.at, (
            select p.at from hotrow.post p where p.author = e.from_user and p.post_id = e.post_id), '-infinity') < old);
    if numbers is null then
        return 0;
    end if;
    if not exists (select from hotrow.reader r where r.user_id = forget_entries.user_id) then
        insert into hotrow.reader (user_id) values (forget_entries.user_id) on conflict do nothing;
    end if;
    select r.* into reader from hotrow.reader r where r.user_id = forget_entries.user_id for update skip locked;
    if not found then
        return 0;
    end if;
    delete from hotrow.inbox_entry e
    where e.user_id = forget_entries.user_id and e.number between lower(numbers) and upper(numbers) - 1 and e.number <@ numbers;
    get diagnostics forgotten = row_count;
    -- Their numbers count as consumed.
    settled := hotrow.advance(reader.read_to, reader.taken + numbers);
    update hotrow.reader r set read_to = settled.read_to, taken = settled.taken where r.user_id = forget_entries.user_id;
    return forgotten;
exception
    when lock_not_available then
        -- Another session reads this inbox for the first time, or a writer trims it by length.
        return 0;
end
$$;

-- Deletes the first posts of one author, 1000 at most, as long as they are older than this time, and returns how many. Posts
-- that are still being brought stay, with all posts after them. Does nothing while another transaction has the author locked.
create function hotrow.forget_posts(author bigint, old timestamptz) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    upto bigint;
    forgotten bigint;
begin
    -- The first post that stays. If all posts that were looked at are old, the last of them is deleted too.
    upto := coalesce((
            select p.post_id - 1 from (
                select p.post_id, p.at from hotrow.post p where p.author = forget_posts.author order by p.post_id limit 1000) p
            where p.at >= old order by p.post_id limit 1), (
            select max(p.post_id) from (
                select p.post_id from hotrow.post p where p.author = forget_posts.author order by p.post_id limit 1000) p));
    if not exists (select from hotrow.post p where p.author = forget_posts.author and p.post_id <= upto) then
        return 0;
    end if;
    perform from hotrow.author a where a.author = forget_posts.author for update skip locked;
    if not found then
        return 0;
    end if;
    upto := least(upto,
        (select min(f.post_id) - 1 from hotrow.fan_out f where f.author = forget_posts.author),
        (select min(l.post_id) - 1 from hotrow.fan_out_left l where l.author = forget_posts.author));
    delete from hotrow.post p where p.author = forget_posts.author and p.post_id <= upto;
    get diagnostics forgotten = row_count;
    update hotrow.author a set forgotten_to = upto
    where a.author = forget_posts.author and a.forgotten_to < upto;
    return forgotten;
end
$$;

-- Deletes entries and posts that are older than the age of inboxes, in the next inboxes and of the next authors. After the
-- last of them it begins again. Returns how many entries and posts were deleted. Call it often enough to reach all of them
-- within that age. Rows that an open transaction has locked are left to the next sweep.
create function hotrow.trim_feeds(most int default 1000, out entries bigint, out posts bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set lock_timeout = '10ms' as $$
#variable_conflict use_column
declare
    sweep hotrow.feed_sweep;
    first bigint := -9223372036854775808;
    last bigint := 9223372036854775807;
    old timestamptz := clock_timestamp() - (select s.inbox_age from hotrow.setting s where s.one);
    users bigint[];
    next_user bigint;
    authors bigint[];
    next_author bigint;
    forgotten bigint;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Look at 1 to 10000 inboxes at a time.');
    end if;
    entries := 0;
    posts := 0;
    select s.* into sweep from hotrow.feed_sweep s order by s.number desc limit 1;
    users := array(
        select i.user_id from hotrow.inbox i where i.user_id >= coalesce(sweep.next_user, first) order by i.user_id limit most);
    authors := array(
        select a.author from hotrow.author a where a.author >= coalesce(sweep.next_author, first) order by a.author limit most);
    for i in 1 .. cardinality(users) loop
        entries := entries + hotrow.forget_entries(users[i], old);
    end loop;
    for i in 1 .. cardinality(authors) loop
        loop
            forgotten := hotrow.forget_posts(authors[i], old);
            posts := posts + forgotten;
            exit when forgotten < 1000 or posts >= 10000;
        end loop;
        if posts >= 10000 then
            -- Enough for one call: the next one continues with this author.
            next_author := authors[i];
            exit;
        end if;
    end loop;
    next_user := case when cardinality(users) < most or users[most] = last then first else users[most] + 1 end;
    next_author := coalesce(next_author,
        case when cardinality(authors) < most or authors[most] = last then first else authors[most] + 1 end);
    insert into hotrow.feed_sweep (next_user, next_author) values (next_user, next_author);
    delete from hotrow.feed_sweep s where s.number = any (array(
        select o.number from hotrow.feed_sweep o where o.number <= sweep.number order by o.number limit 100 for update skip locked));
end
$$;
