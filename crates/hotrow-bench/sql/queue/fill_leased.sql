-- Before a run: a quarter of Hotrow's number of orders, none of them leased.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int / 4);
insert into hotrow_bench.leased (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int / 4);
