-- The number of transactions in the history, and the number of the three other tables whose sum differs from it.
with booked as (select count(*) as entries, coalesce(sum(delta), 0) as total from hotrow_bench.history)
select
    booked.entries as done,
    ((booked.total <> (select sum(balance) from hotrow_bench.branch))::int
        + (booked.total <> (select sum(balance) from hotrow_bench.teller))::int
        + (booked.total <> (select sum(balance) from hotrow_bench.account))::int)::bigint as broken
from booked
