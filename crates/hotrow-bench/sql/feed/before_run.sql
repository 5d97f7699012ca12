-- Before a run: nobody follows anybody, and nothing was ever sent.
truncate hotrow_bench.feed, hotrow_bench.follower;
