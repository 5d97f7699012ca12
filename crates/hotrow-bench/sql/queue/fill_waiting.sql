-- Before a run: a fourth of the orders that Hotrow gets, which is more than a run one at a time can take.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int / 4);
insert into hotrow_bench.waiting (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int / 4);
