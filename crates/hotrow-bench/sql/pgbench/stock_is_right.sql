-- Warm-up: every answer is checked. During the measurement, this would cost pgbench too much.
\if :stock <> 1000000000 + :id
select 'wrong answer'::int;
\endif
