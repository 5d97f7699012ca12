-- Creates the schema and the list of installed migrations for the first migration. Runs each time.

-- CREATE SCHEMA IF NOT EXISTS needs the CREATE right on the database even if the schema exists.
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
