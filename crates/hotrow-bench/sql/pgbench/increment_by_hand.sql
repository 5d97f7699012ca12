\set turn random(1, 1000)
\if :turn = 1
select * from hotrow_bench.command(:run, 'drain', 0);
\else
select * from hotrow_bench.command(:run, 'increment', 1);
\endif
