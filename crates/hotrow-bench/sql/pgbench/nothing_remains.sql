-- Warm-up: every answer is checked, which costs pgbench too much to do it while measuring.
\if :remaining <> 0
select 'wrong answer'::int;
\endif
