-- Warm-up: each order of a client must be later than the client's previous order.
select * from hotrow.take(:run, 1, '30 s') \gset
select * from hotrow.complete(:run, :receipt);
\if :id <= :previous
select 'out of order'::int;
\endif
\set previous :id
