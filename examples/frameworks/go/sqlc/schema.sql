-- The table of the hot row.
create table items (
    id   bigint generated always as identity primary key,
    sold bigint not null
);
