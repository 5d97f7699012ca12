-- Warm-up: only increments by one, so the right answer is the number of commands so far.
\set counter least(int(0.5 * exp(random(1, 1000000000) / 1000000000.0 * ln(2 * :rows + 1)) + 0.5), :rows)
select * from hotrow_bench.command(:counter, 'increment', 1) \gset
\if :value <> :version
select 'wrong answer'::int;
\endif
