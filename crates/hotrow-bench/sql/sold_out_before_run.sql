-- Before a run: a sold-out item, named after the run.
select hotrow.create_sale(current_setting('hotrow_bench.run'), 0);
