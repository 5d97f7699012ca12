-- What the rows say: how many messages have been sent and how many of these consumed, in one sum.
select count(*) + count(*) filter (where status = 1) as done, (count(*) filter (where status not in (0, 1)))::bigint as broken
from hotrow_bench.feed
