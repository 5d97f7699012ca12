-- The schema of the benchmark. This scenario needs no objects in it, because all are in the schema pack.
create schema hotrow_bench;
