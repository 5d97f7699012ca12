-- What must be there before the first migration: the schema and the list of what is installed. Runs each time.

-- CREATE SCHEMA IF NOT EXISTS asks for the database's CREATE right even where the schema is there.
do $$
begin
    if to_regnamespace('hotrow') is null then
        create schema hotrow;
    end if;
end
$$;

create table if not exists hotrow.migration (
    number int primary key,
    name text not null,
    installed_at timestamptz not null default clock_timestamp()
);
