-- Before a run: an empty queue of Hotrow's.
select hotrow.create_queue(current_setting('hotrow_bench.run'));
