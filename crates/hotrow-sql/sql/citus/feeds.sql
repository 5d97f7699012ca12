-- Feeds in a distributed pack. Runs each time, before their functions are created again.

-- The functions that do the work. Only the pack's owner calls them, through the functions of the same names in hotrow.
create schema if not exists hotrow_feeds;
revoke all on schema hotrow_feeds from public;

-- Refuses a call on a node that does not have the tables of feeds.
create or replace function hotrow.check_coordinator(function text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from pg_dist_local_group g where g.groupid <> 0) then
        raise exception using errcode = '0A000',
            message = format('hotrow.%s was called on a worker', function),
            hint = 'In a distributed schema pack, feeds stay on the coordinator: call their functions there, or through a gateway'
                ' that connects to the coordinator.';
    end if;
end
$$;
