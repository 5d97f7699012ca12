-- Boxes of words: a function that waits for a word, its batch function, and a function that adds a word. For tests. `again`
-- is the time after which the gateway repeats a waiting call without a notification.

create schema boxes;
create table boxes.box (name text primary key, again interval not null, waited_for boolean not null default false);
create table boxes.word (box text, n bigint generated always as identity, word text, primary key (box, n));

create function boxes.take_batch(box text[], most int[], wait interval[] default null)
returns table (call int, again_in interval, n bigint, word text)
language plpgsql as $$
#variable_conflict use_column
declare
    one record;
    found_some boolean;
begin
    if 0 > any (most) then
        raise exception using errcode = '22023', message = 'most is less than 0', hint = 'Take 0 or more.';
    end if;
    perform from boxes.box b where b.name = any (take_batch.box) order by b.name for update;
    for one in
        select u.call::int, u.box, u.most, u.wait, b.again
        from unnest(box, most, wait) with ordinality u (box, most, wait, call) join boxes.box b on b.name = u.box
        order by u.call
    loop
        found_some := false;
        for n, word in
            delete from boxes.word w where (w.box, w.n) in (
                select f.box, f.n from boxes.word f where f.box = one.box order by f.n limit one.most)
            returning w.n, w.word
        loop
            found_some := true;
            call := one.call;
            return next;
        end loop;
        if not found_some and one.wait > interval '0' then
            update boxes.box b set waited_for = true where b.name = one.box and not b.waited_for;
            call := one.call;
            again_in := one.again;
            n := null;
            word := null;
            return next;
            again_in := null;
        end if;
    end loop;
end
$$;

create function boxes.take(box text, most int, wait interval default '0') returns table (n bigint, word text)
language plpgsql as $$
#variable_conflict use_column
declare
    until timestamptz := clock_timestamp() + wait;
begin
    perform from boxes.take_batch(array[null::text], array[most], null); -- a bad call does not wait
    loop
        if exists (select from boxes.word w where w.box = take.box) then
            return query select t.n, t.word from boxes.take_batch(array[take.box], array[most], array[interval '0']) t;
            exit when found;
        end if;
        exit when clock_timestamp() >= until;
        perform pg_sleep(0.02);
    end loop;
end
$$;

create function boxes.put(box text, word text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    waited_for boolean;
begin
    select b.waited_for into waited_for from boxes.box b where b.name = put.box for update;
    insert into boxes.word (box, word) values (put.box, put.word);
    if waited_for then
        update boxes.box b set waited_for = false where b.name = put.box;
        perform pg_notify('hotrow_wake', 'boxes.box ' || put.box);
    end if;
end
$$;

select hotrow.add_merge_rule('boxes.take(text,int,interval)', 'boxes.take_batch(text[],int[],interval[])', 'box',
    'boxes.box', wait_argument => 'wait');
