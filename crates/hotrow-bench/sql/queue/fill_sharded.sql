-- Before a run: the same number of orders as for Hotrow, in shards. With fewer clients than shards, only the shards of the
-- clients are used.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int);
insert into hotrow_bench.sharded (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int);
