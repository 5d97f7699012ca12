-- Before a run: there are no reservations, and more stock than any run can sell. Hotrow's item is named after the run.
truncate hotrow_bench.item, hotrow_bench.buyer, hotrow_bench.reservation, hotrow_bench.unit,
    hotrow.sale, hotrow.buyer, hotrow.request;
insert into hotrow_bench.item (item, stock, remaining, per_buyer) values ('phone', 1000000000, 1000000000, 1000);
select hotrow.create_sale(current_setting('hotrow_bench.run'), 1000000000, per_buyer => 1000);
