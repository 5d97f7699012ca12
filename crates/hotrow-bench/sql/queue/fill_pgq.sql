-- Before a run of PgQ: a fourth of the orders that Hotrow gets.
call hotrow_bench.fill_pgq(current_setting('hotrow_bench.rows')::int / 4);
