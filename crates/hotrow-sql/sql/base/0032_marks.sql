-- Marks: with each batch, a lane's connection writes its mark to the log. After a crash of the server, the mark shows the
-- gateway whether the batch was committed. Applications do not use marks.
--
-- A mark is a sequence that only one connection sets, at the end of each batch, to the ID of the batch's transaction plus a
-- number that only this connection knows. In the log, this record follows everything that the batch has written and precedes
-- its commit. A sequence is not rolled back, so after recovery it shows whether the log was kept up to that point. An update of
-- a row would not show it, because it is undone with the batch.
--
-- The number of the connection makes all other values worthless: those of a restored dump, of a script that resets sequences,
-- and of the role itself, which can set its marks but not read them.

-- The first form of marks had bare transaction IDs (migration 28, which is no longer in the list). A gateway of that form must
-- not read the values of this form. It asks for hotrow.take_mark, finds nothing, and works without marks.
do $$
declare
    old text;
begin
    for old in
        select format('hotrow.%I', c.relname) from pg_class c
        where c.relnamespace = 'hotrow'::regnamespace and c.relkind = 'S' and c.relname ~ '^mark_[0-9]+$'
    loop
        execute format('drop sequence %s', old);
    end loop;
end
$$;
drop table if exists hotrow.mark;
drop function if exists hotrow.open_mark();
drop function if exists hotrow.take_mark(text);

-- Marks are not dropped, because pg_dump fails if a sequence disappears while it works. A mark that no connection has held
-- for ten minutes is given to the next connection of its role that asks for one. Its generation counts the owners: the row with
-- the new generation is committed before the new owner sets the mark, so the log has the row before the new values.

create table hotrow.mark (
    -- A random number, which is also part of the sequence's name. The connection that holds the mark also holds the advisory
    -- lock with this key, until its backend ends.
    key bigint primary key,
    -- The role that can set the sequence.
    role name not null,
    generation bigint not null default 1,
    -- When open_mark last looked at this mark.
    checked_at timestamptz not null default clock_timestamp(),
    -- When the mark was first found without a connection, since a connection last held it.
    unused_since timestamptz
);
create index on hotrow.mark (role, checked_at);

-- Returns a mark for the role that has logged in: `hotrow.mark_key/generation`. Returns NULL if the role has 200 marks, which
-- simultaneous calls can exceed by their number, and none of them can be reused. Returns NULL too if the session has another
-- current role, because its lanes would have that role, to which the mark is not granted.
--
-- A mark without a connection is not given away at once: after a crash of the server all marks are without one, until the
-- gateways have connected again and have read their marks. The call looks at 20 marks at most, which limits the number of its
-- locks. Marks go by the name of their role, and also to another role if that name no longer exists. The right to set the mark
-- is granted again if it is missing: a role that was dropped and created again has lost it.
create function hotrow.open_mark() returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    new_key bigint := (('x' || left(md5(gen_random_uuid()::text), 16))::bit(64) >> 1)::bigint;
    old hotrow.mark;
    sequence text;
begin
    if current_setting('role') not in ('none', session_user) then
        return null;
    end if;
    for old in
        select m.* from hotrow.mark m
        where m.role = session_user or not exists (select from pg_roles r where r.rolname = m.role)
        order by m.checked_at limit 20 for update skip locked
    loop
        sequence := format('hotrow.mark_%s', old.key);
        if not pg_try_advisory_xact_lock(old.key) then
            update hotrow.mark m set checked_at = clock_timestamp(), unused_since = null where m.key = old.key;
        elsif to_regclass(sequence) is null then
            delete from hotrow.mark m where m.key = old.key;
        elsif old.unused_since < clock_timestamp() - interval '10 minutes' then
            update hotrow.mark m
            set checked_at = clock_timestamp(), unused_since = null, generation = old.generation + 1, role = session_user
            where m.key = old.key;
            if not has_sequence_privilege(session_user, sequence, 'update') then
                execute format('grant update on sequence %s to %I', sequence, session_user);
            end if;
            return format('%s/%s', sequence, old.generation + 1);
        else
            update hotrow.mark m
            set checked_at = clock_timestamp(), unused_since = coalesce(old.unused_since, clock_timestamp())
            where m.key = old.key;
        end if;
    end loop;
    if (select count(*) from hotrow.mark m where m.role = session_user) >= 200 then
        return null;
    end if;
    sequence := format('hotrow.mark_%s', new_key);
    insert into hotrow.mark (key, role) values (new_key, session_user);
    -- With this increment, nextval raises an error once the sequence has been set. Its answer would show the number of the
    -- connection that holds the mark.
    execute format('create sequence %s increment by 9223372036854775807', sequence);
    execute format('grant update on sequence %s to %I', sequence, session_user);
    return format('%s/1', sequence);
end
$$;

-- Takes a mark for this connection. Returns the value of the sequence, 0 if it was never set; NULL if another backend holds it;
-- no row if the mark has another owner by now or the role cannot set it. The advisory lock is taken before the sequence is
-- read, so no other connection sets it after that. The lock belongs to the session, so it lasts until the backend ends.
create function hotrow.claim_mark(mark text) returns setof bigint
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
    -- Only a mark that open_mark has looked at is written: after a crash, the transaction of this call would often get the very
    -- ID that the lane asks about.
    update hotrow.mark m set unused_since = null
    where m.key = taken and m.generation = owner and m.unused_since is not null;
    -- The mark can have been given to another owner before the lock was taken.
    if exists (select from hotrow.mark m where m.key = taken and m.generation = owner) then
        return next coalesce(pg_sequence_last_value(sequence), 0);
    end if;
end
$$;
