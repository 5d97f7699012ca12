select 1;
update hotrow_bench_:tenant.inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1;
select 1;
