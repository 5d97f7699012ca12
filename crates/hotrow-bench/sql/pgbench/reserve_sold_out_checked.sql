-- Warm-up: every answer is checked, which costs pgbench too much to do it while measuring.
\set buyer random(1, 100000)
select * from hotrow.reserve(:run, :buyer) \gset
\if :remaining <> 0
select 'wrong answer'::int;
\endif
