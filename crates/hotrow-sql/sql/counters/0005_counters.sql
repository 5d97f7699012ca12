-- Counters: increments and drains, judged one after another under the counter's row lock.

create table hotrow.counter (
    counter text collate "C" primary key,
    strategy text not null default 'ledger' check (strategy in ('ledger', 'log')),
    min bigint,
    max bigint,
    -- Always 0 if the strategy is log: the value is then the fold of the log.
    value bigint not null default 0,
    version bigint not null default 0,
    last_at timestamptz not null default '-infinity',
    check (min <= max)
) with (fillfactor = 50); -- every change is of unindexed columns and stays in its page as long as there is room

create function hotrow.create_counter(
    counter text, strategy text default 'ledger', min bigint default null, max bigint default null, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
begin
    perform hotrow.check_name('counter', counter);
    if strategy is null then
        perform hotrow.null_argument('strategy');
    elsif strategy not in ('ledger', 'log') then
        perform hotrow.bad_argument(format('strategy %L is unknown', strategy), 'A strategy is ledger or log.');
    elsif min > max then
        perform hotrow.bad_argument(
            format('min (%s) is above max (%s)', min, max), 'Let min be at most max, or leave one out.');
    end if;
    insert into hotrow.counter (counter, strategy, min, max)
    values (create_counter.counter, create_counter.strategy, create_counter.min, create_counter.max)
    on conflict do nothing;
    if found then
        status := 'created';
        return;
    end if;
    select case when (c.strategy, c.min, c.max)
            is not distinct from (create_counter.strategy, create_counter.min, create_counter.max)
        then 'exists' else 'differs' end
    into create_counter.status from hotrow.counter c where c.counter = create_counter.counter;
end
$$;

-- Returns why an amount cannot be added; NULL if it can. A result outside of bigint is also outside of a bound on that side.
-- The bound is then reported, because the caller chose it. The server inlines the function, because it is one expression.
create function hotrow.refusal(present bigint, amount bigint, min bigint, max bigint) returns text
language sql immutable as $$
    select case
        when case when amount >= 0 then present > 9223372036854775807 - amount end
            then case when max is null then 'overflow' else 'out_of_bounds' end
        when case when amount < 0 then present < -9223372036854775807 - 1 - amount end
            then case when min is null then 'overflow' else 'out_of_bounds' end
        when present + amount > max or present + amount < min then 'out_of_bounds'
    end
$$;

-- The answers of calls, as arrays with one element for each call. Rows would be copied each time a function hands them to
-- another.
create type hotrow.command_answers as (answers bigint[], versions bigint[], statuses text[]);

-- The counters of a batch in lock order: the values of their rows, their strategies, and the time of the commands. A function
-- that returns a named type costs less than one with OUT parameters, because the server does not have to describe its result in
-- each call.
create type hotrow.locked_counters as (entries hotrow.counter[], strategies text[], at timestamptz);

-- Takes the row locks of these counters, and creates those that do not exist.
create function hotrow.lock_counters(names text[]) returns hotrow.locked_counters
language plpgsql as $$
declare
    entry hotrow.counter;
    entries hotrow.counter[];
    strategies text[];
    last_at timestamptz;
begin
    -- All locks are taken first, always in the order of the names. Two batches therefore wait for each other in one direction
    -- only.
    for i in 1 .. cardinality(names) loop
        select c.* into entry from hotrow.counter c where c.counter = names[i] for update;
        if not found then
            perform hotrow.check_name('counter', names[i]);
            -- Another session can be creating it. The insert waits for that session, then the lock is taken as if the row had
            -- existed.
            insert into hotrow.counter (counter) values (names[i]) on conflict do nothing;
            select c.* into strict entry from hotrow.counter c where c.counter = names[i] for update;
        end if;
        entries[i] := entry;
        strategies[i] := entry.strategy;
        last_at := greatest(last_at, entry.last_at);
    end loop;
    -- If the clock was set back, the times in the history do not go back.
    return row(entries, strategies, greatest(clock_timestamp(), last_at));
end
$$;

-- Finds the calls whose request IDs are known, and those that repeat the ID of an earlier call of the batch. The origin of a
-- call is 0 if its answer is recorded, the number of the earlier call if it repeats that call, and NULL if it must be judged.
-- All arrays are NULL if no call has an origin. Recorded requests are looked up only if look is true.
create function hotrow.recall_commands(
    command text, counter text[], amount bigint[], request_id uuid[], look boolean,
    out origins int[], out answers bigint[], out versions bigint[], out statuses text[])
language plpgsql as $$
#variable_conflict use_column
declare
    calls int := cardinality(counter);
    known hotrow.request[];
    known_ids uuid[];
    place int;
begin
    if look then
        select array_agg(r), array_agg(r.request_id) into known, known_ids
        from hotrow.request r where r.request_id = any (recall_commands.request_id);
    end if;
    if known_ids is null and (select count(u) = count(distinct u) from unnest(request_id) u) then
        return;
    end if;
    origins := array_fill(null::int, array[calls]);
    answers := origins;
    versions := origins;
    statuses := array_fill('ok'::text, array[calls]);
    for i in 1 .. calls loop
        continue when request_id[i] is null;
        place := array_position(known_ids, request_id[i]);
        if place > 0 then
            if known[place].command <> command
                or known[place].arguments <> coalesce(amount[i] || ' ', '') || counter[i] then
                perform hotrow.request_reused(request_id[i]);
            end if;
            origins[i] := 0;
            answers[i] := known[place].value;
            versions[i] := known[place].version;
            statuses[i] := known[place].status;
        else
            place := array_position(request_id, request_id[i]);
            if place < i then
                if counter[place] <> counter[i] or amount[place] <> amount[i] then
                    perform hotrow.request_reused(request_id[i]);
                end if;
                origins[i] := place;
            end if;
        end if;
    end loop;
end
$$;

-- The state of each counter after a batch, the answers, and whether a call was accepted.
create type hotrow.judged_commands as (
    entries hotrow.counter[], answers bigint[], versions bigint[], statuses text[], changed boolean);

-- Judges the calls that have no origin, one after another.
create function hotrow.judge_commands(
    drain boolean, calls int, amount bigint[], slots int[], origins int[], entries hotrow.counter[],
    answers bigint[], versions bigint[], statuses text[]) returns hotrow.judged_commands
language plpgsql as $$
declare
    changed boolean := false;
    slot int := 1;
    entry hotrow.counter := entries[1];
    present bigint := entry.value;
    number bigint := entry.version;
    verdict text;
begin
    statuses := coalesce(statuses, array_fill('ok'::text, array[calls]));
    for i in 1 .. calls loop
        if slots[i] <> slot then
            entry.value := present;
            entry.version := number;
            entries[slot] := entry;
            slot := slots[i];
            entry := entries[slot];
            present := entry.value;
            number := entry.version;
        end if;
        if origins[i] is not null then
            if origins[i] > 0 then
                answers[i] := answers[origins[i]];
                versions[i] := versions[origins[i]];
                statuses[i] := statuses[origins[i]];
            end if;
            continue;
        end if;

        -- A drain is refused if 0 is not allowed.
        verdict := hotrow.refusal(case when drain then 0 else present end, coalesce(amount[i], 0), entry.min, entry.max);
        if verdict is null then
            number := number + 1;
            present := present + coalesce(amount[i], 0);
            answers[i] := present;
            if drain then
                present := 0;
            end if;
            changed := true;
        else
            answers[i] := present;
            statuses[i] := verdict;
        end if;
        versions[i] := number;
    end loop;
    entry.value := present;
    entry.version := number;
    entries[slot] := entry;
    return row(entries, answers, versions, statuses, changed);
end
$$;

-- Writes the effects of a batch of accepted commands: one update of the counters, one insert into each history.
create function hotrow.write_commands(
    locked hotrow.locked_counters, judged hotrow.judged_commands, setting hotrow.setting, command text, counter text[],
    slots int[], amount bigint[], request_id uuid[], origins int[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    drain boolean := command = 'drain';
    entry hotrow.counter;
    began bigint;
    written text;
    remembered text;
begin
    with changed as (
        update hotrow.counter c
        set value = case when c.strategy = 'log' then 0 else r.value end, version = r.version, last_at = locked.at
        from unnest(judged.entries) r cross join lateral (
            -- Looks up each row by itself. If the planner took the table for small, a join would read all of it.
            select k.ctid as tid from hotrow.counter k where k.counter = r.counter limit 1) k
        where c.ctid = k.tid and c.version <> r.version
        returning c.xmin as writer
    )
    select hotrow.memory_time(locked.at, c.writer) into written from changed c limit 1;
    if 'ledger' = any (locked.strategies) then
        insert into hotrow.ledger (counter, version, part, request_id, command, amount, value, returned, at)
        select u.counter, u.version, setting.history_part, u.id, write_commands.command, u.amount,
            case when drain then 0 else u.answer end, case when drain then u.answer end, locked.at
        from unnest(counter, slots, request_id, amount, origins, judged.answers, judged.versions, judged.statuses)
            u (counter, slot, id, amount, origin, answer, version, status)
        where u.status = 'ok' and u.origin is null and locked.strategies[coalesce(u.slot, 1)] = 'ledger';
    end if;
    if 'log' = any (locked.strategies) then
        if cardinality(judged.entries) = 1 and judged.entries[1].version - locked.entries[1].version = cardinality(counter) then
            insert into hotrow.log_entry (counter, version, part, command, amounts, request_ids, at)
            values (counter[1], judged.entries[1].version, setting.history_part, write_commands.command,
                coalesce(amount, array_fill(null::bigint, array[cardinality(counter)])), request_id, locked.at);
        else
            insert into hotrow.log_entry (counter, version, part, command, amounts, request_ids, at)
            select u.counter, max(u.version), setting.history_part, write_commands.command,
                array_agg(u.amount order by u.version),
                case when count(u.id) > 0 then array_agg(u.id order by u.version) end, locked.at
            from unnest(counter, slots, request_id, amount, origins, judged.versions, judged.statuses)
                u (counter, slot, id, amount, origin, version, status)
            where u.status = 'ok' and u.origin is null and locked.strategies[coalesce(u.slot, 1)] = 'log'
            group by u.counter;
        end if;
        for i in 1 .. cardinality(judged.entries) loop
            entry := judged.entries[i];
            began := locked.entries[i].version;
            continue when locked.strategies[i] <> 'log' or entry.version = began;
            -- A rollback undoes the setting together with everything else.
            remembered := set_config(hotrow.memory_name(entry.counter), hotrow.memory(setting.secret, entry.counter,
                entry.version::text, entry.value::text, written), false);
            if entry.version / setting.snapshot_every > began / setting.snapshot_every then
                insert into hotrow.snapshot (counter, version, value, at)
                values (entry.counter, entry.version, entry.value, locked.at);
            end if;
        end loop;
    end if;
end
$$;

-- Judges the calls of one command ('increment', or 'drain', which has no amounts) and writes their effects: one update of each
-- counter, one insert into each table.
create function hotrow.apply_commands(
    command text, counter text[], amount bigint[], request_id uuid[], look boolean)
returns hotrow.command_answers
language plpgsql as $$
#variable_conflict use_column
declare
    calls int := cardinality(counter);
    setting hotrow.setting;
    -- The counters of this batch in lock order, and each call's place among them; NULL if there is only one counter.
    names text[] := counter[1:1];
    slots int[];
    locked hotrow.locked_counters;
    entry hotrow.counter;
    recalled record;
    -- One element for each call; NULL if all calls must be judged.
    origins int[];
    answers bigint[];
    versions bigint[];
    statuses text[];
    judged hotrow.judged_commands;
    -- The number of calls that have a request ID and must be judged.
    fresh bigint := num_nonnulls(variadic request_id);
begin
    if calls > 1 and not counter[1] = all (counter) then
        select o.names, o.slots into names, slots from hotrow.lock_order(counter) o;
    end if;
    if array_position(counter, null) > 0 or array_position(amount, null) > 0 then
        perform hotrow.null_argument(case when array_position(counter, null) > 0 then 'counter' else 'amount' end);
    end if;
    locked := hotrow.lock_counters(names);

    -- From here on, everything is read by statements that start after the locks were taken. Their snapshots are newer than
    -- everything that the last holder of a lock wrote.
    select s.* into setting from hotrow.setting s where s.one;
    if 'log' = any (locked.strategies) then
        for i in 1 .. cardinality(names) loop
            entry := locked.entries[i];
            continue when entry.strategy <> 'log';
            entry.value := hotrow.log_value(setting.secret, entry.counter, entry.version, entry.last_at);
            locked.entries[i] := entry;
        end loop;
    end if;
    if fresh > 1 or fresh > 0 and look then
        recalled := hotrow.recall_commands(command, counter, amount, request_id, look);
        if recalled.origins is not null then
            origins := recalled.origins;
            answers := recalled.answers;
            versions := recalled.versions;
            statuses := recalled.statuses;
            fresh := fresh - num_nonnulls(variadic origins);
        end if;
    end if;

    judged := hotrow.judge_commands(
        command = 'drain', calls, amount, slots, origins, locked.entries, answers, versions, statuses);
    if judged.changed then
        perform hotrow.write_commands(
            locked, judged, setting, command, counter, slots, amount, request_id, origins);
    end if;
    if fresh > 0 then
        insert into hotrow.request (request_id, command, arguments, status, value, version, at)
        select u.id, apply_commands.command, coalesce(u.amount || ' ', '') || u.counter, u.status, u.value, u.version,
            locked.at
        from unnest(request_id, counter, amount, origins, judged.statuses, judged.answers, judged.versions)
            u (id, counter, amount, origin, status, value, version)
        where u.id is not null and u.origin is null order by u.id;
    end if;
    return row(judged.answers, judged.versions, judged.statuses);
end
$$;

-- The answers of apply_commands. Nearly all IDs are new, so the first attempt does not look for known ones. If an ID is known,
-- the unique index reports it when the answers are recorded, everything is undone, and the second attempt looks.
create function hotrow.answer_commands(command text, counter text[], amount bigint[], request_id uuid[])
returns hotrow.command_answers
language plpgsql as $$
declare
    violated text;
begin
    if num_nonnulls(variadic request_id) > 0 then
        for attempt in 1 .. 2 loop
            begin
                return hotrow.apply_commands(command, counter, amount, request_id, attempt = 2);
            exception when unique_violation then
                get stacked diagnostics violated = constraint_name;
                perform hotrow.check_retry(violated, attempt);
            end;
        end loop;
    end if;
    return hotrow.apply_commands(command, counter, amount, null, false);
end
$$;

create function hotrow.increment(
    counter text, amount bigint default 1, request_id uuid default null,
    out value bigint, out version bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    entry hotrow.counter;
    answers hotrow.command_answers;
    at timestamptz;
begin
    if request_id is null and amount is not null then
        select c.* into entry from hotrow.counter c where c.counter = increment.counter for update;
        if entry.strategy = 'ledger' then
            -- The usual call does not build arrays. It takes the same lock, judges in the same way and writes the same rows at
            -- half the cost.
            value := entry.value;
            version := entry.version;
            status := coalesce(hotrow.refusal(value, amount, entry.min, entry.max), 'ok');
            if status = 'ok' then
                value := value + amount;
                version := version + 1;
                at := greatest(clock_timestamp(), entry.last_at);
                insert into hotrow.ledger (counter, version, part, command, amount, value, at)
                values (entry.counter, increment.version, (select s.history_part from hotrow.setting s where s.one),
                    'increment', increment.amount, increment.value, at);
                update hotrow.counter c set value = increment.value, version = increment.version, last_at = at
                where c.counter = entry.counter;
            end if;
            return;
        end if;
    end if;
    answers := hotrow.answer_commands('increment', array[counter], array[amount], array[request_id]);
    value := answers.answers[1];
    version := answers.versions[1];
    status := answers.statuses[1];
end
$$;

create function hotrow.increment_batch(counter text[], amount bigint[] default null, request_id uuid[] default null)
returns table (value bigint, version bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    calls int := cardinality(counter);
    answers hotrow.command_answers;
begin
    perform hotrow.check_batch(calls, array_upper(counter, 1), cardinality(amount), array_upper(amount, 1),
        cardinality(request_id), array_upper(request_id, 1));
    if calls > 0 then
        answers := hotrow.answer_commands(
            'increment', counter, coalesce(amount, array_fill(1::bigint, array[calls])), request_id);
        return query select a.* from unnest(answers.answers, answers.versions, answers.statuses) a;
    end if;
end
$$;

create function hotrow.drain(
    counter text, request_id uuid default null, out value bigint, out version bigint, out status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    answers hotrow.command_answers := hotrow.answer_commands('drain', array[counter], null, array[request_id]);
begin
    value := answers.answers[1];
    version := answers.versions[1];
    status := answers.statuses[1];
end
$$;

create function hotrow.drain_batch(counter text[], request_id uuid[] default null)
returns table (value bigint, version bigint, status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    calls int := cardinality(counter);
    answers hotrow.command_answers;
begin
    perform hotrow.check_batch(
        calls, array_upper(counter, 1), cardinality(request_id), array_upper(request_id, 1));
    if calls > 0 then
        answers := hotrow.answer_commands('drain', counter, null, request_id);
        return query select a.* from unnest(answers.answers, answers.versions, answers.statuses) a;
    end if;
end
$$;

-- Stable: all its statements see the caller's snapshot, so version and value belong together.
create function hotrow.counter(counter text, out value bigint, out version bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    entry hotrow.counter;
begin
    perform hotrow.check_name('counter', counter);
    select c.* into entry from hotrow.counter c where c.counter = counter.counter;
    version := coalesce(entry.version, 0);
    value := case when entry.strategy = 'log' then hotrow.log_value(
            (select s.secret from hotrow.setting s where s.one), entry.counter, entry.version, entry.last_at)
        else coalesce(entry.value, 0) end;
end
$$;
