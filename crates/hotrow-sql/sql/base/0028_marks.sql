-- Marks: what a lane's connection leaves in the log with each batch, so that a gateway can find out after a crash of the server
-- whether the batch was committed. Nothing here is for applications.
--
-- A mark is a sequence that one connection alone sets, at the end of each batch, to the id of the batch's transaction. The
-- log has that record between all that the batch has written and its commit. A sequence is not rolled back, so after recovery
-- it shows whether the log was kept up to there. An update of a row would not show it: it is undone with the batch.

--
-- Marks are never dropped: pg_dump fails if a sequence goes while it works. A mark that no connection has had for ten minutes is
-- given to the next connection of its role that asks for one. Its generation counts these owners: the row with the new generation
-- is committed before the new owner sets the mark, so it stands before that in the log.

create table hotrow.mark (
    -- Drawn at random, and part of the sequence's name. The connection that has the mark holds an advisory lock of this key
    -- until its backend ends.
    key bigint primary key,
    -- The role that may set it.
    role name not null,
    generation bigint not null default 1,
    -- When open_mark last looked at it.
    checked_at timestamptz not null default clock_timestamp(),
    -- When it was first found without a connection, since one last had it.
    unused_since timestamptz
);
create index on hotrow.mark (role, checked_at);

-- A mark for the role that has logged in: `hotrow.mark_key/generation`. A session with another current role gets none: its lanes
-- would have that role, to which the mark is not granted. A mark without a connection is not given away at once: after a crash
-- of the server all are without one, until the gateways have connected again and have read what their marks say. At most 20 are
-- looked at, so that the call takes few locks.
create function hotrow.open_mark() returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    new_key bigint := (('x' || left(md5(gen_random_uuid()::text), 16))::bit(64) >> 1)::bigint;
    old hotrow.mark;
begin
    if current_setting('role') not in ('none', session_user) then
        return null;
    end if;
    for old in
        select m.* from hotrow.mark m where m.role = session_user order by m.checked_at limit 20
        for update skip locked
    loop
        if not pg_try_advisory_xact_lock(old.key) then
            update hotrow.mark m set checked_at = clock_timestamp(), unused_since = null where m.key = old.key;
        elsif old.unused_since < clock_timestamp() - interval '10 minutes' then
            update hotrow.mark m
            set checked_at = clock_timestamp(), unused_since = null, generation = old.generation + 1
            where m.key = old.key;
            return format('hotrow.mark_%s/%s', old.key, old.generation + 1);
        else
            update hotrow.mark m
            set checked_at = clock_timestamp(), unused_since = coalesce(old.unused_since, clock_timestamp())
            where m.key = old.key;
        end if;
    end loop;
    insert into hotrow.mark (key, role) values (new_key, session_user);
    execute format('create sequence hotrow.%I', 'mark_' || new_key);
    execute format('grant update on sequence hotrow.%I to %I', 'mark_' || new_key, session_user);
    return format('hotrow.mark_%s/1', new_key);
end
$$;

-- Takes a mark for this connection. Answers where it stands, 0 if it was never set; null if another backend has it; and no row if
-- it has another owner by now, or can't be set. The advisory lock is taken before the mark is read, so no other connection sets it
-- after that. It is the session's, so it lasts until the backend ends.
create function hotrow.take_mark(mark text) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    taken bigint := substring(mark from '_([0-9]+)/')::bigint;
    owner bigint := substring(mark from '/([0-9]+)$')::bigint;
    sequence oid := to_regclass('hotrow.mark_' || taken);
begin
    if not exists (
        select from hotrow.mark m where m.key = taken and m.role = session_user and m.generation = owner
    ) or not coalesce(has_sequence_privilege(session_user, sequence, 'update'), false) then
        return;
    end if;
    if not pg_try_advisory_lock(taken) then
        return next null;
        return;
    end if;
    -- It may have been given away until the lock was taken.
    update hotrow.mark m set unused_since = null where m.key = taken and m.generation = owner;
    if found then
        return next coalesce(pg_sequence_last_value(sequence), 0);
    end if;
end
$$;
