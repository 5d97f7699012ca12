-- Before a run: an item of which nothing is left, named after the run.
select hotrow.create_sale(current_setting('hotrow_bench.run'), 0);
