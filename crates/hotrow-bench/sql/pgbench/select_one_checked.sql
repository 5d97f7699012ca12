-- Warm-up: every answer is checked, which costs pgbench too much to do it while measuring.
select 1 as answer \gset
\if :answer <> 1
select 'wrong answer'::int;
\endif
