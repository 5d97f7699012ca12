-- The pack's settings, and checks of arguments. No commands.

create table hotrow.setting (
    one boolean primary key default true check (one),
    -- How long a request ID is kept with its recorded answer.
    request_retention interval not null default '7 days' check (request_retention > '0'),
    -- The least time for which ledger and command log are kept.
    history_retention interval not null default '7 days' check (history_retention >= '0'),
    -- The part of the ring that ledger and command log are written to. A writer that reads this number just before the ring
    -- moves on writes into the part that has just been closed. That part is the last one that will be emptied.
    history_part smallint not null default 0 check (history_part between 0 and 7),
    -- True while no part that was ever written to has been emptied. Then the history begins with each counter's first command.
    history_whole boolean not null default true,
    -- The largest number of commands in the log that a new connection has to fold.
    snapshot_every int not null default 1000 check (snapshot_every > 0),
    -- Signs the values that connections keep in their memory, because callers can write them: see hotrow.log_value.
    secret text not null default gen_random_uuid()::text || gen_random_uuid()::text
);

insert into hotrow.setting default values;

-- Refuses a call with an argument that is wrong in every state of the database.
create function hotrow.bad_argument(message text, hint text) returns void
language plpgsql as $$
begin
    raise exception using errcode = '22023', message = message, hint = hint;
end
$$;

-- Refuses a call with an argument that is NULL and must not be.
create function hotrow.null_argument(name text) returns void
language plpgsql as $$
begin
    raise exception using errcode = '22004', message = format('%s is NULL', name),
        hint = format('Give %s a value; only arguments that have NULL as their default may be NULL.', name);
end
$$;

-- Refuses names that are NULL, empty, or too long for an index.
create function hotrow.check_name(kind text, name text) returns void
language plpgsql as $$
begin
    if name is null then
        perform hotrow.null_argument(kind);
    elsif name = '' or octet_length(name) > 500 then
        perform hotrow.bad_argument(
            format('the %s''s name has %s bytes', kind, octet_length(name)), 'A name has 1 to 500 bytes.');
    end if;
end
$$;

-- Refuses a batch whose arrays do not give each call one value of every argument. A NULL array stands for defaults. The lengths
-- are each array's number of elements and its upper bound, so arrays that do not begin at 1 are refused too.
create function hotrow.check_batch(calls int, variadic lengths int[]) returns void
language plpgsql as $$
begin
    if calls is null then
        perform hotrow.null_argument('the first array');
    elsif calls > 1000 then
        perform hotrow.bad_argument(format('the batch has %s calls', calls), 'Send at most 1000 calls at a time.');
    elsif not calls = all (lengths) then
        perform hotrow.bad_argument(
            format('the batch''s arrays have different lengths: %s and %s', calls, array_to_string(lengths, ', ')),
            'Give each array one dimension, from 1 on, with one element for each call, or leave an optional one out altogether.');
    end if;
end
$$;

-- Returns the keys of a batch, each once, in the order in which every batch takes its locks, and for each call the place of
-- its key among them.
create function hotrow.lock_order(keys text[], out names text[], out slots int[])
language plpgsql as $$
begin
    names := array(select distinct u.key collate "C" from unnest(keys) u (key) order by 1);
    slots := array(
        select d.slot from (
            select u.call, dense_rank() over (order by u.key collate "C") as slot
            from unnest(keys) with ordinality u (key, call)) d
        order by d.call);
end
$$;
