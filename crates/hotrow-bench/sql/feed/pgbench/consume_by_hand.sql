select * from hotrow_bench.consume(:user, 20, 'ts');
