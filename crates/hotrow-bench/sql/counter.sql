-- The counters of the techniques other than Hotrow, and views that show all counters in one form. It inserts no rows of a
-- run.
create schema hotrow_bench;

create table hotrow_bench.counter (
    counter text   primary key,
    value   bigint not null,
    version bigint not null
) with (fillfactor = 50);

create table hotrow_bench.ledger (
    counter  text   not null,
    version  bigint not null,
    command  text   not null,
    amount   bigint not null,
    value    bigint not null,
    returned bigint not null,
    at       timestamptz not null default clock_timestamp(),
    primary key (counter, version)
);

-- A function as applications write it today: it locks the row, changes it, and writes the ledger entry, all in one round
-- trip.
create function hotrow_bench.command(counter text, command text, amount bigint, out value bigint, out version bigint)
language plpgsql as $$
#variable_conflict use_column
declare
    before bigint;
    after bigint;
begin
    select c.value, c.version + 1 into before, command.version
    from hotrow_bench.counter c where c.counter = command.counter for update;
    after := case command.command when 'drain' then 0 else before + command.amount end;
    command.value := case command.command when 'drain' then before else after end;
    update hotrow_bench.counter c set value = after, version = command.version where c.counter = command.counter;
    insert into hotrow_bench.ledger (counter, version, command, amount, value, returned)
    values (command.counter, command.version, command.command, command.amount, after, command.value);
end
$$;

create table hotrow_bench.application_ledger (
    counter        text   not null,
    version        bigint not null,
    transaction_id text   not null,
    command        text   not null,
    amount         bigint not null,
    value          bigint not null,
    returned       bigint not null,
    primary key (counter, version)
);

create table hotrow_bench.application_log (
    sequence       bigint generated always as identity,
    counter        text   not null,
    transaction_id text   not null,
    command        text   not null,
    amount         bigint not null,
    primary key (counter, sequence)
);

-- The entries of all ledgers.
create view hotrow_bench.entry as
select 'by hand' as keeper, counter, version, command, amount, value from hotrow_bench.ledger
union all
select 'application', counter, version, command, amount, value from hotrow_bench.application_ledger
union all
select 'hotrow', counter, version, command, amount, value from hotrow.ledger;

-- The rows of all counters that have one.
create view hotrow_bench.standing as
select 'by hand' as keeper, counter, version, value from hotrow_bench.counter
union all
select 'hotrow', counter, version, value from hotrow.counter where strategy = 'ledger';
