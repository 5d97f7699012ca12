\set id random(1, :rows)
select stock from hotrow_bench.inv where id = :id;
