\set id random(1, :rows)
update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = :id and stock >= 1 and pg_try_advisory_xact_lock(:id);
