insert into hotrow_bench.waiting (order_id, payload) values (':high-0000-4000-8000-:low', '{"amount": 1}') returning id;
