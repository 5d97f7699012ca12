-- Contradictions in sales, one sentence each: stock that was lost or duplicated, and holds that no check would find.
with taken as (
    select r.item, coalesce(sum(r.quantity) filter (where r.status = 'held'), 0) as held,
        coalesce(sum(r.quantity) filter (where r.status = 'confirmed'), 0) as confirmed,
        min(r.expires_at) filter (where r.status = 'held') as first_expiry
    from hotrow.reservation r group by r.item
)
select case
        when t.held + t.confirmed > s.stock then format('sale %s: oversold by %s: stock %s, held %s, confirmed %s',
            s.item, t.held + t.confirmed - s.stock, s.stock, t.held, t.confirmed)
        else format('sale %s: remaining %s, held %s and confirmed %s do not add up to the stock %s',
            s.item, s.remaining, coalesce(t.held, 0), coalesce(t.confirmed, 0), s.stock)
    end
from hotrow.sale s left join taken t on t.item = s.item
where s.remaining + coalesce(t.held, 0) + coalesce(t.confirmed, 0) <> s.stock
union all
select format('sale %s: a hold expires at %s, before the next check for expired holds (next_expiry %s)', s.item, t.first_expiry,
    coalesce(s.next_expiry::text, 'never'))
from hotrow.sale s join taken t on t.item = s.item
where t.first_expiry < coalesce(s.next_expiry, 'infinity')
union all
select format('sale %s: a hold can expire at %s, and the next check by expire_holds is %s', s.item, s.next_expiry,
    coalesce('at ' || d.look_at, 'never'))
from hotrow.sale s left join hotrow.sale_due d on d.item = s.item
where s.next_expiry < coalesce(d.look_at, 'infinity')
