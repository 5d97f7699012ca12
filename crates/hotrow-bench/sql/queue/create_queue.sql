-- Before a run: an empty queue of Hotrow.
select hotrow.create_queue(current_setting('hotrow_bench.run'));
