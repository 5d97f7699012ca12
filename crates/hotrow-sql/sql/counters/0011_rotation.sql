-- Rotation: deletes the oldest part of ledger and command log, whatever their commands are.

-- Keeps a snapshot of every log counter that has commands in a part that is about to be emptied. Then the rest of the log still
-- folds to the counter's value. Earlier snapshots are deleted, because no remaining command needs them.
create function hotrow.keep_snapshots_of(part smallint) returns void
language plpgsql as $$
declare
    last record;
    known record;
    folded record;
begin
    for last in
        select l.counter, max(l.version) as version, max(l.at) as at from hotrow.log_entry l
        where l.part = keep_snapshots_of.part group by l.counter order by l.counter
    loop
        known := hotrow.snapshot_before(last.counter, last.version);
        if known.version < last.version then
            folded := hotrow.fold_log(last.counter, known.version, known.value, last.version);
            if folded.commands <> last.version - known.version then
                raise exception using errcode = 'XX001',
                    message = format('the command log of counter %s has a gap', last.counter),
                    hint = 'Nothing was forgotten. hotrow verify names the gap; restore the missing commands.';
            end if;
            insert into hotrow.snapshot (counter, version, value, at)
            values (last.counter, last.version, folded.value, last.at);
        end if;
        delete from hotrow.snapshot s where s.counter = last.counter and s.version < last.version;
    end loop;
end
$$;

-- Moves on to the next part of the ring and empties it. Call it often: it rotates only if the present part is a sixth of the
-- retention old and the next part holds nothing that has to be kept. Status: rotated; young (there is nothing to do yet); busy
-- (another session reads the part that would be emptied: call again).
--
-- TRUNCATE by the part's own name locks only that part, to which nothing is written. It waits for the lock for 50 ms at most,
-- which also bounds the wait of sessions that read all parts.
create function hotrow.rotate_history(out status text, out part smallint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set lock_timeout = '50ms' as $$
#variable_conflict use_column
declare
    retention interval;
    now_at timestamptz := clock_timestamp();
    present smallint;
    following smallint;
begin
    -- Two concurrent sessions would empty two parts, so only the session that gets this lock goes on. A call with nothing to
    -- do does not take the lock, because a transaction left open after such a call would block all other sessions.
    for attempt in 1 .. 2 loop
        if attempt = 1 then
            select s.history_retention, s.history_part into retention, present from hotrow.setting s where s.one;
        else
            select s.history_retention, s.history_part into retention, present from hotrow.setting s where s.one for update;
        end if;
        following := (present + 1) % 8;
        part := present;
        if exists (
            select from hotrow.history_part p
            where p.part = present and p.opened_at > now_at - retention / 6
                or p.part = following and p.closed_at > now_at - retention)
        then
            status := 'young';
            return;
        end if;
    end loop;
    perform hotrow.keep_snapshots_of(following);
{{one}}
    execute format('truncate hotrow.ledger_%s, hotrow.log_entry_%s', following, following);
{{many}}
    perform set_config('citus.enable_manual_changes_to_shards', 'on', true);
    execute format('truncate hotrow.%s, hotrow.%s',
        (array[{{parts ledger}}])[following + 1], (array[{{parts log_entry}}])[following + 1]);
{{end}}
    update hotrow.setting s
    set history_part = following, history_whole = s.history_whole and p.opened_at is null
    from hotrow.history_part p where p.part = following and s.one;
    update hotrow.history_part p
    set opened_at = case when p.part = following then now_at else p.opened_at end,
        closed_at = case when p.part = present then now_at end
    where p.part in (present, following);
    status := 'rotated';
    part := following;
exception
    when lock_not_available then
        status := 'busy';
end
$$;
