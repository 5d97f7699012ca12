select hotrow_bench.reserve_nowait(':buyer', ':high-0000-4000-8000-:low');
