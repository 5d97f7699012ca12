-- Bags of words: functions that return several rows, and their batch functions. For tests.

create schema bags;
create table bags.word (bag text, place int, word text, primary key (bag, place));
create type bags.drawn as (word text, place int);

-- The calls draw one after another. Each draws the first words that are left in its bag.
create function bags.draw_batch(bag text[], most int[]) returns table (call int, word text, place int)
language plpgsql as $$
#variable_conflict use_column
begin
    if 0 > any (most) then
        raise exception using errcode = '22023', message = 'most is less than 0', hint = 'Draw 0 or more.';
    end if;
    perform pg_advisory_xact_lock(hashtext(b)) from (select distinct unnest(draw_batch.bag) b order by 1) b;
    return query
        with wanted as (
            select u.call::int, u.bag, sum(u.most) over (partition by u.bag order by u.call) - u.most as from_place,
                sum(u.most) over (partition by u.bag order by u.call) as to_place
            from unnest(draw_batch.bag, draw_batch.most) with ordinality u (bag, most, call)
        ), left_over as (
            select w.*, row_number() over (partition by w.bag order by w.place) as n
            from bags.word w where w.bag = any (draw_batch.bag)
        ), gone as (
            delete from bags.word d using left_over l join wanted w on l.bag = w.bag and l.n > w.from_place and l.n <= w.to_place
            where d.bag = l.bag and d.place = l.place
            returning w.call, d.word, d.place
        )
        select g.call, g.word, g.place from gone g order by g.call, g.place;
end
$$;

create function bags.draw(bag text, most int) returns table (word text, place int)
language sql as $$ select b.word, b.place from bags.draw_batch(array[$1], array[$2]) b $$;

create function bags.rows_batch(bag text[], most int[]) returns table (call int, word text, place int)
language sql as $$ select * from bags.draw_batch($1, $2) $$;
create function bags.rows(bag text, most int) returns setof bags.drawn
language sql as $$ select b.word, b.place from bags.draw_batch(array[$1], array[$2]) b $$;

create function bags.words_batch(bag text[], most int[]) returns table (call int, word text)
language sql as $$ select b.call, b.word from bags.draw_batch($1, $2) b $$;
create function bags.words(bag text, most int) returns setof text
language sql as $$ select b.word from bags.draw_batch(array[$1], array[$2]) b $$;

select hotrow.add_merge_rule('bags.draw(text,int)', 'bags.draw_batch(text[],int[])', 'bag', 'bags.word');
select hotrow.add_merge_rule('bags.rows(text,int)', 'bags.rows_batch(text[],int[])', 'bag', 'bags.word');
select hotrow.add_merge_rule('bags.words(text,int)', 'bags.words_batch(text[],int[])', 'bag', 'bags.word');
