-- The benchmark's own schema, of which this scenario needs nothing: all is in the schema pack.
create schema hotrow_bench;
