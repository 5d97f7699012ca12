-- Before a round: new tables without rows, and no history of the hotrow schema. Tables that stayed would collect the columns that
-- the changes of earlier rounds have dropped. A table has no unique index if a row that was inserted twice must be visible.
drop schema if exists proof cascade;
create schema proof;
create table proof.counter (id int primary key, n bigint not null, client int not null, number bigint not null)
    with (fillfactor = 50);
insert into proof.counter select id, 0, 0, 0 from generate_series(1, :rows) id;
create table proof.own (client int primary key, n bigint not null, number bigint not null) with (fillfactor = 50);
insert into proof.own select client, 0, 0 from generate_series(1, :clients) client;
create table proof.entry (client int not null, number bigint not null, amount int not null check (amount > 0));
create table proof.pair (client int not null, number bigint not null);
create table proof.note (client int not null, number bigint not null);
create function proof.add_note(inout client int, inout number bigint) language plpgsql as $$
begin
    insert into proof.note values (client, number);
end
$$;
truncate hotrow.counter, hotrow.ledger, hotrow.log_entry, hotrow.snapshot, hotrow.sale, hotrow.sale_due, hotrow.buyer,
    hotrow.request;
