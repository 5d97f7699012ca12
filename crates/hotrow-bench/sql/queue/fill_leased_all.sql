-- Before a run by hundreds: the same number of orders as for Hotrow, none of them leased.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int);
insert into hotrow_bench.leased (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int);
