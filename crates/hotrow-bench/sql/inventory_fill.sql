-- A piece of the stock: the rows from hotrow_bench.first to hotrow_bench.last.
insert into hotrow_bench.inv (id, stock, sold)
select id, 1000000000 + id, 0
from generate_series(current_setting('hotrow_bench.first')::int, current_setting('hotrow_bench.last')::int) as id;
