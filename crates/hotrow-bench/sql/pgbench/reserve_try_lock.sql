select hotrow_bench.reserve_try_lock(':buyer', ':high-0000-4000-8000-:low');
