-- Warm-up: each order of a client must be later than the client's previous order.
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
