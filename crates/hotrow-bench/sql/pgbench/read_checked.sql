-- Warm-up: every answer is checked. During the measurement, this would cost pgbench too much.
\set id random(1, :rows)
select stock from hotrow_bench.inv where id = :id \gset
\if :stock <> 1000000000 + :id
select 'wrong answer'::int;
\endif
