call hotrow_bench.fill_pgq(0);
