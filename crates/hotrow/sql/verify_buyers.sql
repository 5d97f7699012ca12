-- Buyers whose count is wrong or above the sale's limit: one sentence each.
select case
        when c.has > s.per_buyer then format('buyer %s of sale %s: has reserved %s, and the limit is %s', c.buyer, c.item, c.has,
            s.per_buyer)
        else format('buyer %s of sale %s: the count is %s, and the sum of the reservations is %s', c.buyer, c.item, c.counted, c.has)
    end
from (
    select coalesce(b.item, r.item) as item, coalesce(b.buyer, r.buyer) as buyer, coalesce(b.quantity, 0) as counted,
        coalesce(r.quantity, 0) as has
    from hotrow.buyer b full join (
        select r.item, r.buyer, sum(r.quantity) as quantity from hotrow.reservation r
        where r.status in ('held', 'confirmed') group by r.item, r.buyer) r
    on r.item = b.item and r.buyer = b.buyer) c
    join hotrow.sale s on s.item = c.item
where s.per_buyer is not null and (c.counted <> c.has or c.has > s.per_buyer)
