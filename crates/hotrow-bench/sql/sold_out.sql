-- The schema of the benchmark. This scenario needs no objects in it, because all are in the hotrow schema.
create schema hotrow_bench;
