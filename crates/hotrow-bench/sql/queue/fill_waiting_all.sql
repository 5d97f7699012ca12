-- Before a run by hundreds, or under a snapshot: the same number of orders as for Hotrow.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int);
insert into hotrow_bench.waiting (order_id, payload)
select gen_random_uuid(), '{"amount": 1}' from generate_series(1, current_setting('hotrow_bench.rows')::int);
