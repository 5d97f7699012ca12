vacuum hotrow_bench.waiting;
\sleep 500 ms
