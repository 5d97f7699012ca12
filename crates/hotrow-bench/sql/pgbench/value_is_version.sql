-- Warm-up: only increments by one, so the right answer is the number of commands so far.
\if :value <> :version
select 'wrong answer'::int;
\endif
