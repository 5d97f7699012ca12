-- Before a run with one row per unit: the pool, which a run of up to half a minute does not empty.
insert into hotrow_bench.item (item, stock, remaining, per_buyer) values ('pool', 300000, 300000, 1000);
insert into hotrow_bench.unit (unit) select generate_series(1, 300000);
analyze hotrow_bench.unit;
