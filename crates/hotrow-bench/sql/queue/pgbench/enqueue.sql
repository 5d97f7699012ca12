\set high random(10000000, 99999999)
\set low random(100000000000, 999999999999)
select * from hotrow.enqueue(':run', ':high-0000-4000-8000-:low', '{"amount": 1}');
