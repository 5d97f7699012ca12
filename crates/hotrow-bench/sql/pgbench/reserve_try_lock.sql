\set buyer random(1, 100000)
\set high random(10000000, 99999999)
\set low random(100000000000, 999999999999)
select hotrow_bench.reserve_try_lock(':buyer', ':high-0000-4000-8000-:low');
