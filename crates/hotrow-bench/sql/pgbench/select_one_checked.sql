-- Warm-up: every answer is checked. During the measurement, this would cost pgbench too much.
select 1 as answer \gset
\if :answer <> 1
select 'wrong answer'::int;
\endif
