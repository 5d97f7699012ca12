-- Warm-up: every answer is checked. During the measurement, this would cost pgbench too much.
\if :remaining <> 0
select 'wrong answer'::int;
\endif
