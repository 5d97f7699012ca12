-- Before a run of the hot row: a fresh row in a fresh page, so that no technique inherits the dead versions of the one before.
truncate hotrow_bench.inv;
insert into hotrow_bench.inv (id, stock, sold) values (1, 1000000001, 0);
