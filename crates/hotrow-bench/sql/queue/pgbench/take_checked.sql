-- Warm-up: what a client gets must come after what it got before.
select * from hotrow.take(:run, 1, null) \gset
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
