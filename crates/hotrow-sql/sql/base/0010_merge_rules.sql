-- Merge rules: each rule names a function whose concurrent calls can become one call of a batch function. The gateway decides when
-- to merge calls.

create table hotrow.merge_rule (
    function text primary key,
    batch text not null,
    key_argument text not null,
    -- A batch never has two merged calls of one key space.
    key_space text not null,
    most_calls int not null check (most_calls between 2 and 1000),
    -- The parameter that says how long a call waits if it finds nothing to return; NULL: the calls do not wait.
    wait_argument text
);

-- The parameters and results of a function, as far as merge rules depend on them.
create function hotrow.signature(function oid,
    out parameters text[], out types oid[], out required int, out columns text[], out column_types oid[],
    out named boolean, out plain boolean, out returns_set boolean, out result text, out is_strict boolean, out context text)
language plpgsql stable as $$
declare
    p pg_proc;
begin
    select f.* into p from pg_proc f where f.oid = signature.function;
    types := array(select t.type from unnest(p.proargtypes) with ordinality t (type, n) order by t.n);
    required := p.pronargs - p.pronargdefaults;
    plain := p.prokind = 'f' and p.provariadic = 0;
    returns_set := p.proretset;
    is_strict := p.proisstrict;
    -- The rights and settings with which it runs, except for those that only decide about plans.
    context := concat(p.prosecdef, array(
        select c.setting from unnest(p.proconfig) c (setting)
        where not exists (
            select from pg_settings s
            where s.name = split_part(c.setting, '=', 1) and s.category like 'Query Tuning%')
        order by c.setting));
    -- The type of the result: a plain type, a record, or a row of a named type.
    result := case when p.prorettype = 'record'::regtype then 'record'
        when exists (select from pg_type t where t.oid = p.prorettype and t.typtype = 'c') then 'row'
        else 'plain' end;
    parameters := array(
        select coalesce(a.name, '') from unnest(p.proargnames) with ordinality a (name, n)
        where p.proargmodes is null or p.proargmodes[a.n] in ('i', 'b', 'v') order by a.n);
    if p.proargmodes && array['o', 'b', 't']::"char"[] then
        named := true;
        select array_agg(p.proargnames[a.n] order by a.n), array_agg(a.type order by a.n) into columns, column_types
        from unnest(p.proallargtypes) with ordinality a (type, n) where p.proargmodes[a.n] in ('o', 'b', 't');
        return;
    end if;
    select array_agg(a.attname::text order by a.attnum), array_agg(a.atttypid order by a.attnum)
    into columns, column_types
    from pg_type t join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
    where t.oid = p.prorettype;
    named := columns is not null;
    if not named then
        columns := array[p.proname::text];
        column_types := array[p.prorettype];
    end if;
end
$$;

-- Returns why calls of a function cannot be merged into calls of a batch function; NULL if they can.
create function hotrow.misfit(function oid, batch oid, key_argument text, wait_argument text) returns text
language plpgsql stable as $$
declare
    single record := hotrow.signature(function);
    batch_function record := hotrow.signature(batch);
    expected oid[];
    -- The columns that the batch function returns before the function's own columns.
    lead text[] := array[]::text[];
    lead_types oid[] := array[]::oid[];
begin
    if single.returns_set then
        lead := array['call'];
        lead_types := array['int'::regtype::oid];
        if wait_argument is not null then
            lead := lead || 'again_in'::text;
            lead_types := lead_types || 'interval'::regtype::oid;
        end if;
    end if;
    expected := array(
        select t.typarray from unnest(single.types) with ordinality s (type, n) join pg_type t on t.oid = s.type
        order by s.n);
    return case
        when not (single.plain and batch_function.plain) then 'both must be plain functions without VARIADIC'
        when cardinality(single.types) = 0 or cardinality(single.parameters) < cardinality(single.types)
            or '' = any (single.parameters) then 'the function must have parameters and each must have a name'
        when single.parameters <> batch_function.parameters then 'the parameters'' names differ'
        when single.is_strict
            then 'the function is STRICT, so it does not run with NULL, and the batch function would run in its place'
        when single.context <> batch_function.context then 'SECURITY DEFINER and SET must be the same for both functions'
        when 0 = any (expected) or expected <> batch_function.types
            then 'each parameter of the batch function must be the array of the function''s parameter'
        when batch_function.required > single.required then 'what is optional in the function must be optional in the batch function'
        when not key_argument = any (single.parameters) then 'the key argument is no parameter of the function'
        when not batch_function.returns_set then 'the batch function must return a set: one row for each call, in call order'
        when wait_argument is not null and not single.returns_set
            then 'a function with a wait argument must return a set: an empty one when the time is over'
        when single.types[array_position(single.parameters, wait_argument)] is distinct from
            case when wait_argument is not null then 'interval'::regtype::oid end
            then 'the wait argument is no parameter of the function, or no interval'
        when lead_types || single.column_types <> batch_function.column_types or (single.named or single.returns_set) <> batch_function.named
            or batch_function.named and lead <> batch_function.columns[:cardinality(lead)]
            or single.named and single.columns <> batch_function.columns[cardinality(lead) + 1:]
            then format('the result''s columns differ%s', case when single.returns_set then format(
                ': of a function that returns a set, the batch function returns them with %s in front',
                case when wait_argument is null then 'call int' else 'call int and again_in interval' end) end)
    end;
end
$$;

create function hotrow.add_merge_rule(
    function text, batch text, key_argument text, key_space text default null, most_calls int default 256,
    wait_argument text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    single regprocedure;
    batch_function regprocedure;
    reason text;
begin
    if function is null or batch is null or key_argument is null or most_calls is null then
        perform hotrow.null_argument('function, batch, key_argument or most_calls');
    elsif most_calls not between 2 and 1000 then
        perform hotrow.bad_argument(format('most_calls is %s', most_calls), 'Let a batch have 2 to 1000 calls.');
    end if;
    begin
        single := function::regprocedure;
        batch_function := batch::regprocedure;
    exception when others then
        perform hotrow.bad_argument(
            sqlerrm, 'Write a function with its schema and its parameters'' types: shop.buy(text,bigint).');
    end;
    reason := case when wait_argument is not null and key_space ~ '\s' then 'the key space must be one word'
        else hotrow.misfit(single, batch_function, key_argument, wait_argument) end;
    if reason is not null then
        perform hotrow.bad_argument(format('calls of %s can''t be merged into %s: %s', single, batch_function, reason),
            'The batch function takes an array for each parameter, under the same name, and returns the same columns.');
    end if;
    insert into hotrow.merge_rule as m (function, batch, key_argument, key_space, most_calls, wait_argument)
    values (single::text, batch_function::text, add_merge_rule.key_argument,
        coalesce(add_merge_rule.key_space, split_part(single::text, '(', 1)), add_merge_rule.most_calls,
        add_merge_rule.wait_argument)
    on conflict (function) do update set batch = excluded.batch, key_argument = excluded.key_argument,
        key_space = excluded.key_space, most_calls = excluded.most_calls, wait_argument = excluded.wait_argument;
end
$$;

create function hotrow.remove_merge_rule(function text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    -- Compared with the text of the rule too, because the function can have been dropped.
    delete from hotrow.merge_rule m
    where m.function in (remove_merge_rule.function, to_regprocedure(remove_merge_rule.function)::text);
    if not found then
        perform hotrow.bad_argument(
            format('there is no merge rule for %s', function), 'See the column function of hotrow.merge_rule.');
    end if;
end
$$;

-- Returns the rules for functions with these names, if the functions exist and fit. Rules are not secret, so every role can
-- call it.
create function hotrow.fitting_rules(names text[]) returns setof jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
        select jsonb_build_object(
            'oid', f.oid::bigint, 'batch_oid', b.oid::bigint, 'schema', fn.nspname, 'name', f.proname,
            'parameters', (
                select jsonb_agg(jsonb_build_object('name', s.parameters[a.n], 'type_oid', a.type::bigint,
                    'array_oid', t.typarray::bigint) order by a.n)
                from unnest(s.types) with ordinality a (type, n) join pg_type t on t.oid = a.type),
            'required', s.required, 'columns', s.columns, 'named', s.named, 'result', s.result,
            'returns_set', s.returns_set,
            'batch_schema', bn.nspname, 'batch_name', b.proname,
            'key_argument', array_position(s.parameters, m.key_argument) - 1,
            'key_space', m.key_space, 'most_calls', m.most_calls,
            'wait_argument', array_position(s.parameters, m.wait_argument) - 1)
        from hotrow.merge_rule m
            join pg_proc f on f.oid = to_regprocedure(m.function) join pg_namespace fn on fn.oid = f.pronamespace
            join pg_proc b on b.oid = to_regprocedure(m.batch) join pg_namespace bn on bn.oid = b.pronamespace
            cross join lateral hotrow.signature(f.oid) s
        where f.proname = any (names) and hotrow.misfit(f.oid, b.oid, m.key_argument, m.wait_argument) is null
        order by m.function;
end
$$;

-- Returns the rules for functions with these names, and whether the caller sees and can execute the functions. The gateway
-- calls it. It runs as the caller and with the caller's search_path, because the result depends on both. Every name is
-- therefore written out in full, and no operator is used that the caller's search_path could replace.
create function hotrow.merge_rules(names text[]) returns json
language sql stable as $$
    select coalesce(pg_catalog.json_agg(pg_catalog.jsonb_concat(rule, pg_catalog.jsonb_build_object(
        'visible', pg_catalog.pg_function_is_visible(function),
        'callable', pg_catalog.has_function_privilege(function, 'execute')
            and pg_catalog.has_function_privilege(batch, 'execute')
            and pg_catalog.has_schema_privilege(pg_catalog.jsonb_extract_path_text(rule, 'schema'), 'usage')
            and pg_catalog.has_schema_privilege(pg_catalog.jsonb_extract_path_text(rule, 'batch_schema'), 'usage')))),
        '[]'::pg_catalog.json)
    from (
        select r.rule, cast(pg_catalog.jsonb_extract_path_text(r.rule, 'oid') as pg_catalog.oid) as function,
            cast(pg_catalog.jsonb_extract_path_text(r.rule, 'batch_oid') as pg_catalog.oid) as batch
        from hotrow.fitting_rules(names) r (rule)) r
$$;
