-- Before a run: no history, and one counter named after the run, so no connection can remember it.
truncate hotrow_bench.counter, hotrow_bench.ledger, hotrow_bench.application_ledger, hotrow_bench.application_log,
    hotrow.counter, hotrow.ledger, hotrow.log_entry, hotrow.snapshot, hotrow.request;
insert into hotrow_bench.counter (counter, value, version) values (current_setting('hotrow_bench.run'), 0, 0);
