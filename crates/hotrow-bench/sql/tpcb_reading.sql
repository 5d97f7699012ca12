-- What the rows say: how many transactions the history has, and how many of the three other tables do not add up to it.
with booked as (select count(*) as entries, coalesce(sum(delta), 0) as total from hotrow_bench.history)
select
    booked.entries as done,
    ((booked.total <> (select sum(balance) from hotrow_bench.branch))::int
        + (booked.total <> (select sum(balance) from hotrow_bench.teller))::int
        + (booked.total <> (select sum(balance) from hotrow_bench.account))::int)::bigint as broken
from booked
