-- Contradictions between the tables when no work is under way. No rows mean that the tables are consistent. The service
-- does not use this query.
with decided as (
    select * from payments.attempt where state not in ('started', 'unknown')
), sums as (
    select intent,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('purchase', 'capture')), 0) as captured,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind = 'refund'), 0) as refunded,
        count(*) filter (where state = 'succeeded' and kind in ('purchase', 'authorize')) as charges
    from payments.attempt group by intent
), steps as (
    select t.*, lag(t.state, 1, 'created') over w as left_at, row_number() over w as nth
    from payments.transition t window w as (partition by intent order by version)
), days as (
    select merchant, settled_on as day, currency, count(*) as attempts,
        count(*) filter (where state <> 'succeeded') as declined,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('authorize', 'purchase')), 0) as authorized,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('capture', 'purchase')), 0) as captured,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind = 'refund'), 0) as refunded
    from decided group by 1, 2, 3
)
select 'an attempt is not finished' as what, id::text as id
from payments.attempt where due_at is not null or state in ('started', 'unknown')
union all
select 'an intent is under way', id::text from payments.intent where state like '%ing'
union all
select 'an intent was charged twice', intent::text from sums where charges > 1
union all
select 'an intent has other sums than its attempts', i.id::text
from payments.intent i left join sums s on s.intent = i.id
where (i.captured, i.refunded) is distinct from (coalesce(s.captured, 0), coalesce(s.refunded, 0))
union all
select 'an intent has other states than its log', i.id::text
from payments.intent i
left join lateral (
    select t.state, t.version from payments.transition t where t.intent = i.id order by t.version desc limit 1
) last on true
where (i.state, i.version) is distinct from (coalesce(last.state, 'created'), coalesce(last.version, 1))
union all
select 'a log has a gap', intent::text from steps where version <> nth + 1 or state_before <> left_at
union all
select 'a decided attempt has no event', a.id::text
from decided a where not exists (
    select from payments.outbox o
    where o.aggregateid = a.intent::text and o.payload -> 'attempt' ->> 'id' = a.id::text)
union all
select 'an event is about nothing', o.id::text
from payments.outbox o where not exists (
    select from decided a where a.id::text = o.payload -> 'attempt' ->> 'id')
union all
select 'an attempt has two events', min(o.id::text)
from payments.outbox o group by o.payload -> 'attempt' ->> 'id' having count(*) > 1
union all
select 'a day does not add up', coalesce(m.merchant, d.merchant) || ' ' || coalesce(m.day, d.day)
from payments.merchant_day m
full join days d on d.merchant = m.merchant and d.day = m.day and d.currency = m.currency
where (m.attempts, m.declined, m.authorized, m.captured, m.refunded)
        is distinct from (d.attempts, d.declined, d.authorized, d.captured, d.refunded)
    and (m.attempts <> 0 or d.attempts is not null)
union all
select 'a day is still closed', merchant || ' ' || day from payments.merchant_day where epoch % 2 = 1
union all
select 'a webhook was not worked on', gateway || ' ' || event from payments.webhook where due_at is not null
