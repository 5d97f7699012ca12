-- Before a run: no history, and all counters exist.
truncate hotrow_bench.counter, hotrow_bench.ledger, hotrow.counter, hotrow.ledger, hotrow.request;
insert into hotrow_bench.counter (counter, value, version)
select number, 0, 0 from generate_series(1, current_setting('hotrow_bench.rows')::int) as number;
insert into hotrow.counter (counter)
select number from generate_series(1, current_setting('hotrow_bench.rows')::int) as number;
