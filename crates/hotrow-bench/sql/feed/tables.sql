-- Inboxes as applications store them on PostgreSQL today: partitions by inheritance, a partial index on unread messages, and
-- functions with dynamic SQL, because planning for many partitions would cost more than the work. It inserts no rows of a
-- run.
-- Each partition would raise a notice that its columns are merged with those of the table.
set client_min_messages = warning;
create schema hotrow_bench;

create table hotrow_bench.feed (
    uid      bigint,
    from_uid bigint,
    ts       timestamp,
    content  text,
    status   int
);

create index on hotrow_bench.feed (uid, ts) where status = 0;

do $$
begin
    for i in 0 .. 63 loop
        execute format(
            'create table hotrow_bench.feed_%1$s (like hotrow_bench.feed including all, check (abs(mod(uid, 64)) = %1$s))
                inherits (hotrow_bench.feed)', i);
    end loop;
end
$$;

create function hotrow_bench.push(bigint, bigint, timestamp, text, int) returns void
language plpgsql strict as $$
declare
    i int := abs(mod($1, 64));
begin
    execute format('insert into hotrow_bench.feed_%s (uid, from_uid, ts, content, status) values (%s, %s, %L, %L, %s)',
        i, $1, $2, $3, $4, $5);
end
$$;

create function hotrow_bench.consume(bigint, int, text) returns setof hotrow_bench.feed
language plpgsql strict as $$
declare
    i int := abs(mod($1, 64));
begin
    return query execute format(
        'with taken as (
            update hotrow_bench.feed_%1$s set status = 1 where ctid = any (array(
                select ctid from hotrow_bench.feed_%1$s where status = 0 and uid = %2$s order by ts limit %3$s))
            returning *
        )
        select * from taken order by %4$s', i, $1, $2, $3);
end
$$;

-- The followers of each author.
create table hotrow_bench.follower (
    author   bigint,
    user_id bigint,
    primary key (author, user_id)
);

-- Writes the text to each follower's inbox, in one call.
create function hotrow_bench.post(who bigint, said text) returns void
language plpgsql as $$
begin
    perform hotrow_bench.push(f.user_id, who, now()::timestamp, said, 0)
    from hotrow_bench.follower f where f.author = who order by f.user_id;
end
$$;
