\set author random(1, 64)
select hotrow_bench.post(:author, :content);
