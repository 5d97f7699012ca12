-- Before a run of the hot row: a new row in a new page, so that no technique inherits the dead versions of the previous one.
truncate hotrow_bench.inv;
insert into hotrow_bench.inv (id, stock, sold) values (1, 1000000001, 0);
