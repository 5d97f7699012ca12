-- The beginning of a distributed pack. Runs each time, before the shards are made.

-- The number of shards never changes, because it decides where a name is.
create table if not exists hotrow.distribution (
    one boolean primary key default true check (one),
    shards int not null,
    -- Whether calls go to the shards.
    in_use boolean not null default false
);

-- The functions that a shard runs. key_parameter is the parameter with the name that decides where; NULL if the arguments do
-- not show it.
create table if not exists hotrow.distributed_function (
    name text primary key,
    key_parameter text
);
