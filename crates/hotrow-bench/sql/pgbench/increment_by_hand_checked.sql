-- Warm-up: only increments by one, so the right answer is the number of commands so far.
select * from hotrow_bench.command(:run, 'increment', 1) \gset
\if :value <> :version
select 'wrong answer'::int;
\endif
