begin;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :first and stock >= 1;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :second and stock >= 1;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :third and stock >= 1;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :fourth and stock >= 1;
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1;
end;
