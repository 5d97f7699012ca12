\set id random(1, :rows)
update hotrow_bench.service set last_seen_at = now(), writes = writes + 1 where id = :id;
