-- Statements that psql runs directly and through the gateway, to compare the output: everything that a client of the
-- simple protocol can meet. Never anything that differs between runs, such as times, process IDs and object IDs.
\set VERBOSITY verbose
\pset null '(null)'
create table kind (id int primary key, name text not null unique);
create table thing (
    id int primary key,
    small smallint,
    whole int check (whole < 1000000),
    big bigint,
    scaled numeric(8, 2),
    float8 double precision,
    label text,
    fixed varchar(5),
    day date,
    moment timestamp,
    span interval,
    flag boolean,
    list int[],
    doc jsonb,
    bytes bytea,
    kind int references kind
);
insert into kind values (1, 'first'), (2, 'second');
insert into thing (id, small, whole, big, scaled, float8, label) select i, i, i, i, i, i, 'thing ' || i from generate_series(1, 5) i;

-- numbers
update thing set small = small + 1 where id = 1;
update thing set small = small + 100000 where id = 1;
update thing set small = 32767 where id = 1 returning small;
update thing set small = 32768 where id = 1;
update thing set small = -32768 where id = 1 returning small;
update thing set small = - 32769 where id = 1;
update thing set whole = 2147483648 where id = 1;
update thing set whole = whole + 2147483647 where id = 1;
update thing set big = 2147483648 where id = 1 returning big;
update thing set big = 9223372036854775808 where id = 1;
update thing set big = whole * 3 where id = 1 returning big;
update thing set whole = 7 / 2 where id = 1 returning whole;
update thing set scaled = 7 / 2 where id = 1 returning scaled;
update thing set scaled = 7 / 2.0 where id = 1 returning scaled;
update thing set scaled = 1.005 where id = 1 returning scaled, scaled * 2.50;
update thing set scaled = 123456789.1 where id = 1;
update thing set float8 = 0.1 where id = 1 returning float8, float8 + 0.2;
update thing set float8 = 1e308 where id = 1 returning float8;
update thing set float8 = float8 * 10 where id = 1;
update thing set whole = 1.5 where id = 1 returning whole;
update thing set whole = 2.5 where id = 1 returning whole;
update thing set whole = '12' where id = 1 returning whole;
update thing set whole = 'twelve' where id = 1;
update thing set whole = whole / 0 where id = 1;
update thing set whole = 1000000 where id = 1;
select whole from thing where id = 2147483648;
select whole from thing where id = -1;
select whole from thing where id = 1.0;
select whole from thing where id = '1';
select whole from thing where id = '1.5';
select whole from thing where id = 1e0;
select whole, -whole, 1 from thing where id = 2;

-- texts
update thing set label = 'ünïcödé ☃ 名前' where id = 2 returning label, length(label);
update thing set label = 'it''s' where id = 2 returning label;
update thing set label = E'tab\tnew\\line' where id = 2 returning label;
update thing set label = $$dollars 'and' $1$$ where id = 2 returning label;
update thing set label = U&'\0441\043B' where id = 2 returning label;
update thing set label = 5 where id = 2 returning label;
update thing set label = label || 5 where id = 2 returning label;
update thing set label = null where id = 2 returning label, coalesce(label, 'none');
update thing set fixed = 'sixsix' where id = 2;
update thing set fixed = 'five' where id = 2 returning fixed;
select label, fixed from thing where id = 2 and label is null;

-- other types
update thing set day = '2024-02-29' where id = 3 returning day;
update thing set day = '2023-02-29' where id = 3;
update thing set day = 20240101 where id = 3;
update thing set day = date '2024-01-31' + 1 where id = 3 returning day;
update thing set moment = '2024-02-29 12:34:56.789' where id = 3 returning moment;
update thing set span = '1 day 2 hours' where id = 3 returning span;
update thing set span = interval '3' hour where id = 3 returning span;
update thing set flag = true where id = 3 returning flag;
update thing set flag = 1 where id = 3;
update thing set flag = 'yes' where id = 3 returning flag;
update thing set list = '{1,2,3}' where id = 3 returning list, list[2];
update thing set list = array[4, 5] where id = 3 returning list;
update thing set list = '{1,' where id = 3;
update thing set doc = '{"a": [1, 2]}' where id = 3 returning doc, doc -> 'a';
update thing set doc = '{a}' where id = 3;
update thing set bytes = '\x00ff' where id = 3 returning bytes;
update thing set big = x'1f'::int where id = 3 returning big;

-- rows inserted, skipped on conflict and deleted
insert into kind values (3, 'third') returning *;
insert into kind values (3, 'again');
insert into kind values (4, 'third');
insert into kind values (5, null);
insert into kind (id, name) values (3, 'kept') on conflict (id) do nothing;
insert into kind (id, name) values (3, 'taken') on conflict (id) do update set name = excluded.name returning id, name;
insert into kind values (6, 'six'), (7, 'seven') returning id;
insert into thing (id, kind) values (6, 99);
insert into thing (id, kind) values (6, 3) returning id, kind, small;
delete from kind where id = 3;
delete from thing where id = 6 returning id, kind;
delete from kind where id = 3;
delete from kind where id = 3;
delete from kind where name = 'six' returning *;
update kind set name = 'first' where id = 2;
update kind set id = id + 100 where id = 2 returning id;
update kind set id = 2 where id = 102;
update thing set small = 0 where id > 3;
update thing set small = 1;
select * from kind where id = 1;
select count(*), sum(small) from thing;
table kind;
values (1, 'a'), (2, null);

-- errors
select nothing from thing where id = 1;
select lable from thing where id = 1;
update thing set nothing = 1 where id = 1;
update nowhere set a = 1 where id = 1;
update thing set whole = where id = 1;
update thing set whole = 'unclosed where id = 1;
';
select nofunction(1);
insert into kind values (1);
insert into kind values (1, 'a', 'b');
selec 1;
;
select;

-- notices, warnings and blocks
drop table if exists nowhere;
do $$ begin raise notice 'a note' using detail = 'its detail', hint = 'its hint'; end $$;
do $$ begin raise exception 'refused' using errcode = 'P0042', detail = 'its detail', hint = 'its hint', column = 'c'; end $$;
create function notes(n int) returns int language plpgsql as $$ begin raise warning 'got %', n; return n; end $$;
update thing set whole = notes(5) where id = 4 returning whole;
commit;
begin;
update thing set small = 9 where id = 4;
savepoint s;
update thing set small = small / 0 where id = 4;
select 1;
rollback to s;
select small from thing where id = 4;
rollback;
select small from thing where id = 4;

-- several in one message
update thing set small = 10 where id = 4 \; select small from thing where id = 4;
update thing set small = 11 where id = 4 \; update thing set small = small / 0 where id = 4 \; select 1;
select small from thing where id = 4;

-- commands of psql
select id, small, scaled, label, day, doc from thing where id = 1 \gdesc
update thing set small = 12 where id = 4 returning small, label \gdesc
select nothing from thing \gdesc
update thing set small = 13 where id = 4 returning small as got \gset
\echo :got
select format('update thing set small = %s where id = %s returning id, small', id + 20, id) from thing where id < 3 \gexec
\set FETCH_COUNT 2
select id from thing order by id;
\unset FETCH_COUNT
\copy kind from stdin
20	twenty
21	twenty-one
\.
\copy kind from stdin
22	twenty-two
x	twenty-three
\.
\copy (select * from kind order by id) to stdout
copy kind (id) from stdin;
30
\.
copy (select 1 / 0) to stdout;
prepare p (int, int) as update thing set small = $2 where id = $1 returning small;
execute p (4, 14);
execute p (4, 100000);
deallocate p;
execute p (4, 15);
set extra_float_digits = -10;
select float8 from thing where id = 2;
reset extra_float_digits;
show hotrow.nothing;
\d kind
