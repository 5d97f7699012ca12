insert into hotrow_bench.same (queue, line, part, place, id, order_id, created_at, at, payload)
select 1, 0, 0, number, number, ':high-0000-4000-8000-:low', now(), clock_timestamp(), '{"amount": 1}'
from nextval('hotrow_bench.same_number') number returning id;
