select hotrow_bench.reserve_update(':buyer', ':high-0000-4000-8000-:low');
