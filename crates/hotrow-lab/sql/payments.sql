-- The service creates its own tables. This schema only marks the server as used by the benchmark.
create schema hotrow_bench;
