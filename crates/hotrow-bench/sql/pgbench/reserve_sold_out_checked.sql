-- Warm-up: every answer is checked. During the measurement, this would cost pgbench too much.
\set buyer random(1, 100000)
select * from hotrow.reserve(:run, :buyer) \gset
\if :remaining <> 0
select 'wrong answer'::int;
\endif
