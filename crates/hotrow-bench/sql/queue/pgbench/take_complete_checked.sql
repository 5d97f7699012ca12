-- Warm-up: what a client gets must come after what it got before.
select * from hotrow.take(:run, 1, '30 s') \gset
select * from hotrow.complete(:run, :receipt);
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
