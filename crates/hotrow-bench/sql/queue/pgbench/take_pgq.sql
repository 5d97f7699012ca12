select hotrow_bench.pgq_batch();
