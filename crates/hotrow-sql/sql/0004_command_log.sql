-- What a log counter's value is: folded from memory, snapshot and commands. Never how a command is judged.

-- Folds the commands after a known state. commands says how many there were, so that the caller notices a gap (a part of
-- the ring was emptied); began_at says when the known state's own command was written.
create function hotrow.fold_log(counter text, known_version bigint, known_value bigint, upto bigint,
    out value bigint, out commands bigint, out began_at timestamptz)
language plpgsql as $$
begin
    with behind as materialized (
        select l.version, l.command, l.amount, l.at from hotrow.command_log l
        where l.counter = fold_log.counter and l.version >= known_version and l.version <= upto
    ), drained as (
        select max(b.version) as version from behind b where b.command = 'drain' and b.version > known_version
    )
    select (case when d.version is null then known_value else 0 end
                + coalesce(sum(b.amount) filter (where b.version > coalesce(d.version, known_version)), 0))::bigint,
           count(*) filter (where b.version > known_version), min(b.at) filter (where b.version = known_version)
    into fold_log.value, fold_log.commands, fold_log.began_at
    from drained d left join behind b on true
    group by d.version;
end
$$;

-- The last state that is kept of a log counter at or before a version; before its first command every counter is 0.
create function hotrow.snapshot_before(counter text, upto bigint, out version bigint, out value bigint)
language plpgsql as $$
begin
    select s.version, s.value into snapshot_before.version, snapshot_before.value from hotrow.snapshot s
    where s.counter = snapshot_before.counter and s.version <= upto order by s.version desc limit 1;
    if not found then
        version := 0;
        value := 0;
    end if;
end
$$;

-- A signature over what a connection remembers of a counter: hashed twice, so that nobody can lengthen a message whose
-- signature he has seen. This and the next are single expressions, so that the server puts them in place of the call.
create function hotrow.sign_memory(secret text, counter text, memory text) returns text
language sql immutable as $$
    select md5(secret || md5(secret || memory || ' ' || counter))
$$;

-- The setting in which a connection remembers a counter. There are 64, shared by all counters: a connection's memory
-- stays small, and whoever finds another counter's memory starts from the snapshot.
create function hotrow.memory_name(counter text) returns text
language sql immutable as $$
    select 'hotrow.memory_' || (hashtext(counter) & 63)::text
$$;

-- Remembers the state that this transaction leaves behind, and returns what it remembers. A rollback undoes the setting
-- with everything else.
create function hotrow.remember(secret text, counter text, version bigint, value bigint, at timestamptz) returns text
language plpgsql as $$
declare
    memory text := version || ' ' || value || ' ' || (extract(epoch from at) * 1000000)::bigint;
begin
    return set_config(hotrow.memory_name(counter), memory || ' ' || hotrow.sign_memory(secret, counter, memory), false);
end
$$;

-- The value of a log counter at its present version. The caller has read version and last_at of its row, under its
-- lock if it goes on to write.
--
-- What the connection remembers is only believed if its signature is right, since any caller can write settings, and if
-- the command it ends with is in the log at the very time that was remembered: a caller could have kept the memory of a
-- transaction that was rolled back, and that one's version has been used again since.
create function hotrow.log_value(secret text, counter text, version bigint, last_at timestamptz) returns bigint
language plpgsql as $$
declare
    memory text[] := string_to_array(current_setting(hotrow.memory_name(counter), true), ' ');
    remembered_at timestamptz;
    known record;
    folded record;
begin
    if cardinality(memory) = 4
        and memory[4] = hotrow.sign_memory(secret, counter, memory[1] || ' ' || memory[2] || ' ' || memory[3])
    then
        remembered_at := timestamptz 'epoch' + memory[3]::bigint * interval '1 microsecond';
        if memory[1]::bigint = log_value.version and remembered_at = last_at then
            return memory[2]::bigint;
        end if;
        folded := hotrow.fold_log(counter, memory[1]::bigint, memory[2]::bigint, log_value.version);
        if folded.commands = log_value.version - memory[1]::bigint and folded.began_at = remembered_at then
            return folded.value;
        end if;
    end if;
    known := hotrow.snapshot_before(counter, log_value.version);
    folded := hotrow.fold_log(counter, known.version, known.value, log_value.version);
    if folded.commands <> log_value.version - known.version then
        raise exception using errcode = '40001',
            message = format('commands of counter %s were forgotten while they were read', counter),
            hint = 'Run the transaction again; its snapshot is older than the oldest part of the command log.';
    end if;
    return folded.value;
end
$$;
