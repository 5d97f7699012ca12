-- Before a run of PgQ: a queue without orders.
call hotrow_bench.fill_pgq(0);
