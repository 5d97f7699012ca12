call hotrow_bench.fill_pgq(current_setting('hotrow_bench.rows')::int / 4);
