-- A piece of the services: the rows from hotrow_bench.first to hotrow_bench.last.
insert into hotrow_bench.service (id, last_seen_at, writes)
select id, 'epoch', 0
from generate_series(current_setting('hotrow_bench.first')::int, current_setting('hotrow_bench.last')::int) as id;
