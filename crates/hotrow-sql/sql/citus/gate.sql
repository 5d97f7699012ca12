-- The way into a shard. A call of one of its functions is part of a query on this table, which Citus runs on the node that has
-- the shard. A call that can write first runs an UPDATE that finds no row. Citus then keeps the shard on its node until the
-- transaction ends, and commits in two phases if the transaction has written on several nodes.
create table hotrow.gate (one boolean primary key default true check (one));
insert into hotrow.gate default values;
