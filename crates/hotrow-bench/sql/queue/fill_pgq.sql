-- Before a run of PgQ: the same number of orders as for Hotrow.
call hotrow_bench.fill_pgq(current_setting('hotrow_bench.rows')::int);
