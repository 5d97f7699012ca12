\set high random(10000000, 99999999)
\set low random(100000000000, 999999999999)
insert into hotrow_bench.waiting (order_id, payload) values (':high-0000-4000-8000-:low', '{"amount": 1}') returning id;
