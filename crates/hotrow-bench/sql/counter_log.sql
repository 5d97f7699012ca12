-- Before a run of the command log: the run's counter keeps no value.
select hotrow.create_counter(current_setting('hotrow_bench.run'), 'log');
