begin;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1;
commit;
