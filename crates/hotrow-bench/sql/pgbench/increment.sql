\set turn random(1, 1000)
\if :turn = 1
select * from hotrow.drain(:run);
\else
select * from hotrow.increment(:run);
\endif
