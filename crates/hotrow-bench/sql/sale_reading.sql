-- The reserved quantity, and the number of items, buyers and requests that do not match the reservations.
with reservation as (
    select 'by hand' as keeper, item, buyer, sum(quantity) as quantity, count(*) as rows
    from hotrow_bench.reservation group by item, buyer
    union all
    select 'hotrow', item, buyer, sum(quantity), count(*)
    from hotrow.reservation where status in ('held', 'confirmed') group by item, buyer
),
item as (
    select 'by hand' as keeper, item, per_buyer,
        stock - case item when 'pool' then (select count(*) from hotrow_bench.unit) else remaining end as gone
    from hotrow_bench.item
    union all
    select 'hotrow', item, per_buyer, stock - remaining from hotrow.sale
),
reserved as (
    select keeper, item, sum(quantity) as quantity, sum(rows) as rows from reservation group by keeper, item
),
buyer as (
    select 'by hand' as keeper, item, buyer, quantity from hotrow_bench.buyer
    union all
    select 'hotrow', item, buyer, quantity from hotrow.buyer
)
select
    coalesce((select sum(quantity) from reserved), 0)::bigint as done,
    ((select count(*) from item left join reserved using (keeper, item)
            where item.gone <> coalesce(reserved.quantity, 0))
        + (select count(*) from buyer full join reservation using (keeper, item, buyer)
            where coalesce(buyer.quantity, 0) <> coalesce(reservation.quantity, 0))
        + (select count(*) from buyer join item using (keeper, item) where buyer.quantity > item.per_buyer)
        + (select abs((select count(*) from hotrow.request)
            - coalesce((select sum(rows) from reserved where keeper = 'hotrow'), 0)))
    )::bigint as broken
