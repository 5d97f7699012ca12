-- The stock that is sold while others do something new. The counters c0 to c19 make a million different statements possible:
-- each of them changes other counters.
create schema hotrow_bench;

create table hotrow_bench.inv (
    id    int    primary key,
    stock bigint not null,
    sold  bigint not null,
    kind  text   not null default 'usual',
    note  text,
    seen  timestamptz,
    ip    inet
);

do $$
begin
    for number in 0..19 loop
        execute format('alter table hotrow_bench.inv add c%s int not null default 0', number);
    end loop;
end
$$;

create index by_kind on hotrow_bench.inv (kind);

-- A table that only the disturbance uses.
create table hotrow_bench.scratch (id int);
