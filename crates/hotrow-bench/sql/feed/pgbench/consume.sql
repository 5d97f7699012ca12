-- Every inbox in turn, so that none runs empty before the others.
\set previous :previous + 2531
\set user 1 + (:client_id * 73 + :previous) % 4096
select * from hotrow.consume(:user, 20);
