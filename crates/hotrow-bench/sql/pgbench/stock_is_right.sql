-- Warm-up: every answer is checked, which costs pgbench too much to do it while measuring.
\if :stock <> 1000000000 + :id
select 'wrong answer'::int;
\endif
