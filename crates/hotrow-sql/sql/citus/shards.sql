-- How calls find their shard in a distributed pack. Runs each time, after the shards exist. SHARDS stands for their number, which
-- never changes.

-- The shard of a name. Each shard has an equal part of the hashes, and the gateway computes the same.
create or replace function hotrow.shard_of(name text) returns int
language sql immutable as $$
    select ((hashtext(name collate "C")::bigint + 2147483648) * SHARDS / 4294967296)::int
$$;

-- The shard of a user of feeds.
create or replace function hotrow.shard_of(user_id bigint) returns int
language sql immutable as $$
    select ((hashint8(user_id)::bigint + 2147483648) * SHARDS / 4294967296)::int
$$;

create or replace function hotrow.shards() returns int[]
language sql immutable as $$
    select array(select generate_series(0, SHARDS - 1))
$$;

-- Begins a call that can write: Citus finds the shard's node, and keeps the shard there until the transaction ends.
create or replace function hotrow.enter_shard(shard int) returns void
language plpgsql as $$
begin
    execute format('update hotrow_shard_%s.gate set one = one where not one', shard);
end
$$;

-- The shard of a reservation; NULL if no shard has it. A reservation has the ID of its request, which the client chooses, so
-- every shard is asked.
create or replace function hotrow.shard_of_reservation(id uuid) returns int
language plpgsql stable as $$
declare
    one int;
    here boolean;
begin
    foreach one in array hotrow.shards() loop
        execute format('select exists (select from hotrow_shard_%s.request r where r.request_id = $1 and r.state is not null)', one)
        into here using id;
        if here then
            return one;
        end if;
    end loop;
    return null;
end
$$;

-- Refuses a call for names of several shards. Its answer could not be exact, because another call can see the effects in one
-- shard before those in another.
create or replace function hotrow.check_one_shard(function text, names text[]) returns void
language plpgsql as $$
begin
    if (select count(distinct hotrow.shard_of(u.name)) from unnest(names) u (name)) > 1 then
        raise exception using errcode = '0A000',
            message = format('%s was called for items of several shards', function),
            hint = 'In a distributed hotrow schema, all items of one call must have the same hotrow.shard_of(item).';
    end if;
end
$$;

-- Calls a function of every shard: call is its name with its arguments.
create or replace function hotrow.on_shards(call text) returns setof text
language plpgsql as $$
declare
    one int;
begin
    foreach one in array hotrow.shards() loop
        perform hotrow.enter_shard(one);
        return query execute format(
            'select f::text from hotrow_shard_%1$s.gate g cross join lateral hotrow_shard_%1$s.%2$s f', one, call);
    end loop;
end
$$;

-- How calls of a function are distributed, for the gateway; NULL if the function stays on the coordinator.
create or replace function hotrow.distribution_of(function text) returns json
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return (
        select json_build_object(
            'method', 'h',
            'column', coalesce(d.key_parameter, ''),
            'type_oid', k.type,
            'is_deterministic', true,
            'probe', case
                when k.type = 'bigint'::regtype then hashint8(7)
                -- In other encodings, the server's bytes of a text are not those of the messages.
                when getdatabaseencoding() in ('UTF8', 'SQL_ASCII') then hashtext('7')
            end,
            'local_node', (select g.groupid from pg_dist_local_group g),
            'shards', coalesce((
                select json_agg(
                    json_build_object('id', p.shardid, 'least', (4294967296 * s.shard / SHARDS - 2147483648),
                        'greatest', (4294967296 * (s.shard + 1) / SHARDS - 2147483648 - 1), 'node', p.groupid)
                    order by s.shard)
                from unnest(hotrow.shards()) s (shard)
                    join pg_dist_shard c on c.logicalrelid = to_regclass(format('hotrow_shard_%s.gate', s.shard))
                    join pg_dist_placement p on p.shardid = c.shardid and p.shardstate = 1), '[]'),
            'nodes', coalesce((
                select json_agg(json_build_object('id', n.groupid, 'host', n.nodename, 'port', n.nodeport))
                from pg_dist_node n where n.noderole = 'primary' and n.isactive and n.hasmetadata and n.metadatasynced),
                '[]'))
        from hotrow.distributed_function d
        cross join lateral (
            select coalesce((
                select s.types[array_position(s.parameters, d.key_parameter)]
                from pg_proc p cross join lateral hotrow.signature(p.oid) s
                where p.pronamespace = 'hotrow'::regnamespace and p.proname = d.name), 'text'::regtype)::oid::bigint as type) k
        where d.name = distribution_of.function);
end
$$;
grant execute on function hotrow.distribution_of(text) to public;
