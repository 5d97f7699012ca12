-- Accounts in 8 shards. All updates of one account run on the node that has its shard.
set citus.shard_count = 8;
create table accounts (id bigint primary key, balance bigint not null default 0);
select create_distributed_table('accounts', 'id');
insert into accounts select id, 0 from generate_series(1, 10000) id;
