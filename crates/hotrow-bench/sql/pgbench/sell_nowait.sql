select hotrow_bench.sell_nowait(1);
