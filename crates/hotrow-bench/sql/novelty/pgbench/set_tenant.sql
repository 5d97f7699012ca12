set search_path = hotrow_bench_:tenant;
update inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1;
reset search_path;
