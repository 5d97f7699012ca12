-- The service makes its own tables; this schema is only the benchmark's mark on the server.
create schema hotrow_bench;
