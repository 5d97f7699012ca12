-- Before a run of PgQ: as many orders as Hotrow gets.
call hotrow_bench.fill_pgq(current_setting('hotrow_bench.rows')::int);
