-- Request IDs and their recorded answers. Other files decide the effects of a command.

-- A reservation is a row of this table too. It is the row of its request, under the request's ID, or it has an ID of its own if
-- the call had none. A reservation therefore costs one row and one entry in a unique index, and hotrow.reservation is a view.
create table hotrow.request (
    request_id uuid primary key,
    command text not null,
    -- The arguments of the call, as text. Reusing an ID with other arguments is an error. NULL for a call of reserve, whose
    -- arguments have columns of their own.
    arguments text,
    status text not null,
    value bigint,
    version bigint,
    remaining bigint,
    reservation_ids uuid[],
    refused_item text,
    at timestamptz not null,
    item text collate "C",
    buyer text collate "C",
    quantity bigint,
    -- The state of the reservation; NULL if the row is not a reservation.
    state text check (state in ('held', 'confirmed', 'cancelled', 'expired')),
    -- NULL: held until it is confirmed or cancelled.
    expires_at timestamptz
);
-- The rows that can be deleted by age. A reservation is not one of them, because it keeps its ID for as long as it exists.
create index request_at on hotrow.request (at) where state is null;
create index request_held on hotrow.request (item, expires_at) where state = 'held';

-- Refuses an ID that belongs to another call.
create function hotrow.request_reused(request_id uuid) returns void
language plpgsql as $$
begin
    perform hotrow.bad_argument(
        format('request id %s was used for another command or with other arguments', request_id),
        'Give each new request an id of its own; repeat an id only to repeat the very same call.');
end
$$;

-- Returns the recorded answer of a call with this ID; NULL if there is none. The caller holds the lock that serialises calls
-- with this ID.
create function hotrow.recorded(request_id uuid, command text, arguments text) returns hotrow.request
language plpgsql as $$
#variable_conflict use_column
declare
    known hotrow.request;
begin
    select r.* into known from hotrow.request r where r.request_id = recorded.request_id;
    if known.command <> recorded.command or known.arguments <> recorded.arguments then
        perform hotrow.request_reused(recorded.request_id);
    end if;
    return known;
end
$$;

-- Refuses an ID that another session has just used. Two calls with the same ID are serialised by the lock on their row
-- (counter or sale) before they look here. A unique violation therefore means that a concurrent call for another row used the
-- ID.
create function hotrow.request_taken() returns void
language plpgsql as $$
begin
    perform hotrow.bad_argument(
        'a request id was used at the same moment for another command or with other arguments',
        'Give each new request an id of its own; repeat an id only to repeat the very same call.');
end
$$;

-- Checks whether a unique violation in this attempt justifies another attempt, which looks for known IDs. It does not if the
-- violation is not of a request ID, or if this attempt has already looked.
create function hotrow.check_retry(violated text, attempt int) returns void
language plpgsql as $$
begin
    if violated is distinct from '{{one}}request_pkey{{many}}{{key request}}{{end}}' then
        raise exception using errcode = 'XX001', message = format('the tables have rows that %s should prevent', violated),
            hint = 'Run hotrow verify: the pack''s tables were changed by something else.';
    elsif attempt > 1 then
        perform hotrow.request_taken();
    end if;
end
$$;

-- Deletes requests that are older than their retention, a few per call to keep transactions short. Call it until it returns 0.
create function hotrow.forget_requests(most int default 1000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    forgotten bigint;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most < 0 then
        perform hotrow.bad_argument(format('most is %s', most), 'Forget 0 or more requests at a time.');
    end if;
    delete from hotrow.request r
    where r.request_id = any (array(
        select old.request_id from hotrow.request old
        where old.state is null and old.at < clock_timestamp() - (select s.request_retention from hotrow.setting s where s.one)
        order by old.at limit most for update skip locked));
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;
