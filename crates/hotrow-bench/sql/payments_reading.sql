-- Payments that a payment gateway was asked for, and what of them does not add up.
with attempt as (
    select intent, count(*) filter (where state = 'succeeded' and kind in ('authorize', 'purchase')) as authorizations,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('capture', 'purchase')), 0) as captured,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind = 'refund'), 0) as refunded
    from payments.attempt group by intent
), transition as (
    select intent, count(*) as steps, max(version) as version from payments.transition group by intent
), day as (
    select merchant, currency, sum(declined) as declined, sum(captured) as captured, sum(refunded) as refunded
    from payments.merchant_day group by merchant, currency
), of_attempts as (
    select merchant, currency,
        count(*) filter (where state in ('declined', 'not_executed')) as declined,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('capture', 'purchase')), 0) as captured,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind = 'refund'), 0) as refunded
    from payments.attempt where settled_on is not null group by merchant, currency
)
select count(*) filter (where i.attempt is not null) as done,
    count(*) filter (where i.state like '%ing' or a.authorizations > 1 or i.captured <> coalesce(a.captured, 0)
        or i.refunded <> coalesce(a.refunded, 0) or i.version <> coalesce(t.steps, 0) + 1
        or i.version <> coalesce(t.version, 1))
    + (select count(*) from payments.attempt where state in ('started', 'unknown'))
    + (select count(*) from day full join of_attempts o using (merchant, currency)
       where (day.declined, day.captured, day.refunded) is distinct from (o.declined, o.captured, o.refunded))
    + abs((select count(*) from payments.attempt where settled_on is not null) - (select count(*) from payments.outbox))
        as broken
from payments.intent i
left join attempt a on a.intent = i.id
left join transition t on t.intent = i.id
