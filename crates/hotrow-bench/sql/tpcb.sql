-- The tables of pgbench's built-in TPC-B-like script at scale 1: one branch, whose row every transaction changes, ten
-- tellers, a hundred thousand accounts, and a history.
create schema hotrow_bench;

create table hotrow_bench.branch (
    bid int primary key,
    balance bigint not null
) with (fillfactor = 50);

create table hotrow_bench.teller (
    tid int primary key,
    balance bigint not null
) with (fillfactor = 50);

create table hotrow_bench.account (
    aid int primary key,
    balance bigint not null
);

create table hotrow_bench.history (
    tid int not null,
    bid int not null,
    aid int not null,
    delta int not null,
    mtime timestamptz not null
);

insert into hotrow_bench.account select aid, 0 from generate_series(1, 100000) aid;
