-- The number of units of the first row, which every transaction sells, and the number of rows that violate an invariant (as
-- in the inventory) or of quarters of the table whose sum differs from that number.
with quarter as (
    select (id - 1) * 4 / current_setting('hotrow_bench.rows')::int as number, sum(sold) as sold
    from hotrow_bench.inv where id > 1 group by 1
), hot as (
    select sold from hotrow_bench.inv where id = 1
)
select
    hot.sold as done,
    ((select count(*) from quarter where quarter.sold <> hot.sold)
        + (select count(*) filter (where stock + sold <> 1000000000 + id or stock < 0 or sold < 0)
            + abs(count(*) - current_setting('hotrow_bench.rows')::bigint) from hotrow_bench.inv))::bigint as broken
from hot
