-- The objects of the model of PostgreSQL on a real server.
create table t (id int primary key, n int not null);
insert into t select id, 0 from generate_series(0, 99) id;
insert into t values (999, 1000000);

create table sink (n int);

-- The function of each FunctionCall.
create function nothing() returns int language sql as $$ select null::int $$;

-- What a constant meant when its statement was read: its name, and the time zone of that moment.
create function reading(name text, midnight timestamptz) returns text immutable language plpgsql as $$
declare
    west int := extract(epoch from midnight - timestamptz '2000-01-01 00:00+00') / 3600;
begin
    return format('''%s@%s''', name, case when west = 0 then 'UTC' else 'Etc/GMT+' || west end);
end $$;

-- The event triggers of the model: effects of commands that their texts do not show.
create function after_command() returns event_trigger language plpgsql as $$
begin
    case
    when current_query() like '%create table%' then
        perform set_config('work_mem', '1MB', false), set_config('app.made', '1', false);
    when current_query() like '%view prepares%' then
        if exists (select from pg_prepared_statements where name = 'q') then
            deallocate q;
        end if;
        execute 'prepare q as select n from t where id = 999';
    when current_query() like '%view forgets%' then
        deallocate all;
    else
    end case;
end $$;
create event trigger after_command on ddl_command_end
    when tag in ('CREATE TABLE', 'CREATE VIEW') execute function after_command();
