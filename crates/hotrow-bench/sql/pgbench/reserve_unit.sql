select hotrow_bench.reserve_unit(':buyer', ':high-0000-4000-8000-:low');
