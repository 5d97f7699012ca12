-- Every inbox in turn, so that none runs empty before the others.
\set previous :previous + 633
\set user 1 + (:client_id * 73 + :previous) % 1024
select * from hotrow_bench.consume(:user, 20, 'ts');
