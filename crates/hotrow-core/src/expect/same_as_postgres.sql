-- The objects of the simulated statements.
create table sink (n int);

create table refusing (n int);
create function refuse() returns trigger language plpgsql as $$
begin
    raise exception 'refused';
end $$;
create trigger refuse before insert on refusing execute function refuse();

create function succeeds() returns int language sql as $$ select null::int $$;
create function fails() returns int language sql as $$ select 1 / (0 * random())::int $$;
