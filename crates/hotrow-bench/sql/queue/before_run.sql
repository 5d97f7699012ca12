-- Before a run: nothing waits and nothing is processed.
truncate hotrow_bench.waiting, hotrow_bench.sharded, hotrow_bench.leased, hotrow_bench.processed, hotrow_bench.begun
    restart identity;
select hotrow_bench.drop_pgq();
