-- Before a run: all rows in new pages, with a full stock.
truncate hotrow_bench.inv;
insert into hotrow_bench.inv (id, stock, sold)
select id, 1000000000 + id, 0 from generate_series(1, current_setting('hotrow_bench.rows')::int) as id;
