-- Before a run: half of the messages that Hotrow's inboxes get, which is more than a run can consume.
select hotrow_bench.push(1 + number % 1024, number, clock_timestamp()::timestamp, repeat(md5('a'), 64), 0)
from generate_series(1, current_setting('hotrow_bench.rows')::int / 2) as number;
