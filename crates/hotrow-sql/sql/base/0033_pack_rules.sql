-- Pack rules: each rule names a function whose owner declares that a call changes only rows, in its transaction, and is short.
-- The gateway then runs its calls in batches, one by one, like statements that it can prove itself.

create table hotrow.pack_rule (
    function text primary key,
    -- The number of the parameter that identifies the row for which a call contends; NULL: all calls contend with each other.
    key_argument int,
    -- Functions with the same key space contend for the same rows.
    key_space text not null
);

create function hotrow.add_pack_rule(function text, key_argument text default null, key_space text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    declared regprocedure;
    head record;
    place int;
begin
    if function is null then
        perform hotrow.null_argument('function');
    end if;
    begin
        declared := function::regprocedure;
    exception when others then
        perform hotrow.bad_argument(
            sqlerrm, 'Write a function with its schema and its parameters'' types: shop.buy(text,bigint).');
    end;
    head := hotrow.signature(declared);
    if not head.plain then
        perform hotrow.bad_argument(format('%s is not a plain function without VARIADIC', declared),
            'A procedure, an aggregate or a window function cannot have a pack rule.');
    end if;
    place := case when key_argument ~ '^[0-9]{1,3}$' then key_argument::int
        else array_position(head.parameters, nullif(key_argument, '')) end;
    if key_argument is not null and coalesce(place, 0) not between 1 and cardinality(head.types) then
        perform hotrow.bad_argument(format('%s has no parameter %s', declared, key_argument),
            'Write the name of the parameter that identifies the row, or its number, counted from 1.');
    end if;
    insert into hotrow.pack_rule as r (function, key_argument, key_space)
    values (declared::text, place, coalesce(add_pack_rule.key_space, split_part(declared::text, '(', 1)))
    on conflict (function) do update set key_argument = excluded.key_argument, key_space = excluded.key_space;
end
$$;

create function hotrow.remove_pack_rule(function text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    -- Compared with the text of the rule too, because the function can have been dropped.
    delete from hotrow.pack_rule r
    where r.function in (remove_pack_rule.function, to_regprocedure(remove_pack_rule.function)::text);
    if not found then
        perform hotrow.bad_argument(
            format('there is no pack rule for %s', function), 'See the column function of hotrow.pack_rule.');
    end if;
end
$$;

-- Returns the rules for functions with these names, if the functions exist. The gateway calls it. Rules are not secret, so every
-- role can call it.
create function hotrow.pack_rules(names text[]) returns json
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    -- The nodes of a distributed pack have this function and not the table. In a database with Citus, rules have no effect.
    if to_regclass('hotrow.pack_rule') is null then
        return '[]';
    end if;
    return (
        select coalesce(json_agg(json_build_object(
            'oid', f.oid::bigint, 'schema', n.nspname, 'name', f.proname,
            'parameters', (
                select coalesce(json_agg(json_build_object('name', coalesce(s.parameters[a.n], ''),
                    'type_oid', a.type::bigint) order by a.n), '[]')
                from unnest(s.types) with ordinality a (type, n)),
            'key_argument', r.key_argument - 1, 'key_space', r.key_space) order by r.function), '[]')
        from hotrow.pack_rule r
            join pg_proc f on f.oid = to_regprocedure(r.function) join pg_namespace n on n.oid = f.pronamespace
            cross join lateral hotrow.signature(f.oid) s
        where f.proname = any (names) and s.plain);
end
$$;
