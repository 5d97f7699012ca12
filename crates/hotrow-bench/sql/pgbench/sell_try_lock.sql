update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1 and pg_try_advisory_xact_lock(1);
