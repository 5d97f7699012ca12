-- The value of a log counter, folded from memory, snapshot and commands. Commands are judged in 0005_counters.sql.

-- Folds the commands that follow a known state up to the last command of a row. The known state is the one after a row of the
-- log. commands is their number, from which the caller detects a gap (a part of the ring was emptied). written is the time and
-- the transaction of the known state's own row.
create function hotrow.fold_log(counter text, known_version bigint, known_value bigint, upto bigint,
    out value bigint, out commands bigint, out written text)
language plpgsql as $$
begin
    with behind as materialized (
        select e.version, e.command, e.amounts, e.at, e.xmin as writer from hotrow.log_entry e
        where e.counter = fold_log.counter and e.version >= known_version and e.version <= upto
    ), drained as (
        select max(b.version) as version from behind b where b.command = 'drain' and b.version > known_version
    )
    select (case when d.version is null then known_value else 0 end + coalesce(
                sum((select sum(a) from unnest(b.amounts) a)) filter (where b.version > coalesce(d.version, known_version)),
                0))::bigint,
           coalesce(sum(cardinality(b.amounts)) filter (where b.version > known_version), 0),
           min(hotrow.memory_time(b.at, b.writer)) filter (where b.version = known_version)
    into fold_log.value, fold_log.commands, fold_log.written
    from drained d left join behind b on true
    group by d.version;
end
$$;

-- The last snapshot of a log counter at or before a version. Before its first command every counter is 0.
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

-- The setting in which a connection remembers a counter. All counters share 64 settings, which keeps a connection's memory
-- small. A call that finds the memory of another counter starts from the snapshot. The server inlines this function and the
-- next two, because they are single expressions.
create function hotrow.memory_name(counter text) returns text
language sql immutable as $$
    select '{{pack}}.memory_' || (hashtext(counter) & 63)::text
$$;

-- The memory of a connection about a counter: version, value, the time and the transaction in which that version's command was
-- written, and a signature over these and the counter. The signed text begins and ends with the secret, so a caller that has
-- seen a signature cannot extend the text.
create function hotrow.memory(secret text, counter text, version text, value text, written text) returns text
language sql stable as $$
    select concat_ws(' ', version, value, written, md5(concat_ws(' ', secret, version, value, written, counter, secret)))
$$;

-- The time and the transaction in which a row was written, in the form that memory has, for any settings of the session.
create function hotrow.memory_time(at timestamptz, writer xid) returns text
language sql immutable as $$
    select encode(timestamptz_send(at), 'hex') || '-' || writer::text
$$;

-- The value of a log counter at its present version. The caller has read version and last_at of the counter's row, under the
-- row's lock if it goes on to write.
--
-- The connection's memory is trusted only under two conditions:
-- - Its signature is right. Any caller can write settings.
-- - The command it ends with is in the log, written by the transaction that was remembered. A caller could have kept the
--   memory of a transaction or savepoint that was rolled back, and its version has been used again since. Its time can have
--   been used again too, because the times of a counter stand still after the clock was set back. Its transaction ID is not
--   used again: the row's xmin is the ID of the savepoint if there is one. (After a crash IDs are used again, but at other
--   times.)
create function hotrow.log_value(secret text, counter text, version bigint, last_at timestamptz) returns bigint
language plpgsql as $$
declare
    memory text := current_setting(hotrow.memory_name(counter), true);
    parts text[];
    last text;
    known record;
    folded record;
begin
    select hotrow.memory_time(log_value.last_at, c.xmin) into last from hotrow.counter c where c.counter = log_value.counter;
    if memory = hotrow.memory(secret, counter, version::text, split_part(memory, ' ', 2), last) then
        return split_part(memory, ' ', 2)::bigint;
    end if;
    parts := string_to_array(memory, ' ');
    if memory = hotrow.memory(secret, counter, parts[1], parts[2], parts[3]) then
        folded := hotrow.fold_log(counter, parts[1]::bigint, parts[2]::bigint, log_value.version);
        if folded.commands = log_value.version - parts[1]::bigint
            and folded.written = parts[3]
        then
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
