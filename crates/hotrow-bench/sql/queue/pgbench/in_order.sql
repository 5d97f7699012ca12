-- Warm-up: what a client gets must come after what it got before.
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
