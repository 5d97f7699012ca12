-- The history of commands on counters: ledger and command log, each a ring of parts. Commands are judged in 0005_counters.sql.

-- The ring. Exactly one part is written to (hotrow.setting says which one). The others are history, each older than the one
-- after it. The times of a part that was never used are NULL.
create table hotrow.history_part (
    part smallint primary key check (part between 0 and 7),
    opened_at timestamptz,
    closed_at timestamptz
);
insert into hotrow.history_part (part, opened_at)
select part, case when part = 0 then clock_timestamp() end from generate_series(0, 7) part;

-- One row for each accepted command of a counter with the strategy ledger.
create table hotrow.ledger (
    counter text collate "C" not null,
    version bigint not null,
    part smallint not null,
    request_id uuid,
    command text not null,
    -- NULL for a drain.
    amount bigint,
    -- The value after the command.
    value bigint not null,
    -- The value that a drain returned.
    returned bigint,
    at timestamptz not null,
    primary key (counter, version, part)
) partition by list (part);
create table hotrow.ledger_0 partition of hotrow.ledger for values in (0);
create table hotrow.ledger_1 partition of hotrow.ledger for values in (1);
create table hotrow.ledger_2 partition of hotrow.ledger for values in (2);
create table hotrow.ledger_3 partition of hotrow.ledger for values in (3);
create table hotrow.ledger_4 partition of hotrow.ledger for values in (4);
create table hotrow.ledger_5 partition of hotrow.ledger for values in (5);
create table hotrow.ledger_6 partition of hotrow.ledger for values in (6);
create table hotrow.ledger_7 partition of hotrow.ledger for values in (7);

-- The log of counters with the strategy log. All commands of a batch that were accepted for one counter are one row, because
-- only their amounts and request IDs differ. A counter's value is the fold of its commands.
create table hotrow.log_entry (
    counter text collate "C" not null,
    -- The version of the last command in the row; the commands before it have the versions before it.
    version bigint not null,
    part smallint not null,
    command text not null,
    -- One element for each command, in order; all of them are NULL in a row of drains.
    amounts bigint[] not null check (cardinality(amounts) between 1 and 1000),
    -- NULL if no command has one.
    request_ids uuid[],
    at timestamptz not null,
    primary key (counter, version, part)
) partition by list (part);
create table hotrow.log_entry_0 partition of hotrow.log_entry for values in (0);
create table hotrow.log_entry_1 partition of hotrow.log_entry for values in (1);
create table hotrow.log_entry_2 partition of hotrow.log_entry for values in (2);
create table hotrow.log_entry_3 partition of hotrow.log_entry for values in (3);
create table hotrow.log_entry_4 partition of hotrow.log_entry for values in (4);
create table hotrow.log_entry_5 partition of hotrow.log_entry for values in (5);
create table hotrow.log_entry_6 partition of hotrow.log_entry for values in (6);
create table hotrow.log_entry_7 partition of hotrow.log_entry for values in (7);

-- The command log with one row for each command.
create view hotrow.command_log as
    select e.counter, e.version - cardinality(e.amounts) + c.place as version, e.part, e.request_ids[c.place] as request_id,
        e.command, c.amount, e.at
    from hotrow.log_entry e cross join lateral unnest(e.amounts) with ordinality c (amount, place);

-- The value of a log counter after its commands up to the last command of a row. There is one snapshot for each snapshot_every
-- commands that are kept, and the snapshot just before the oldest of them.
create table hotrow.snapshot (
    counter text collate "C" not null,
    version bigint not null,
    value bigint not null,
    at timestamptz not null,
    primary key (counter, version)
);
