-- Before a run: a quarter of Hotrow's number of orders, which is more than a run that takes single orders can use.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int / 4);
insert into hotrow_bench.waiting (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int / 4);
