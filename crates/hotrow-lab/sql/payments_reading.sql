-- The payments with an order to a payment gateway, and the contradictions among them. All orders are purchases, so the
-- consequences of each outcome are known, and all rows are compared with the attempts.
with attempt as (
    select a.*,
        case state when 'succeeded' then 'captured' when 'declined' then 'failed' when 'not_executed' then 'created' end as leads_to,
        case state when 'succeeded' then 'captured' when 'declined' then 'failed' else 'not_executed' end as news,
        case state when 'succeeded' then amount else 0 end as taken
    from payments.attempt a
), sum as (
    select intent, count(*) as attempts, count(*) filter (where state = 'succeeded') as charges, sum(taken) as captured,
        (array_agg(leads_to order by intent_version desc))[1] as state
    from attempt group by intent
), step as (
    select a.intent, s.version, s.state, a.id as attempt
    from attempt a cross join lateral (values (intent_version, 'authorizing'), (intent_version + 1, leads_to)) s (version, state)
), log as (
    select t.*, lag(t.state, 1, 'created') over (partition by intent order by version) as left_at from payments.transition t
), day as (
    select merchant, settled_on as day, currency, count(*) as attempts, count(*) filter (where state <> 'succeeded') as declined,
        sum(taken) as captured
    from attempt group by 1, 2, 3
)
select count(*) filter (where i.attempt is not null) as done,
    count(*) filter (where s.charges > 1
        or (i.state, i.version, i.captured, i.refunded) is distinct from
            (coalesce(s.state, 'created'), 1 + 2 * coalesce(s.attempts, 0), coalesce(s.captured, 0), 0))
    + (select count(*) from attempt where due_at is not null or leads_to is null or kind <> 'purchase')
    + (select count(*) from step s full join log t using (intent, version)
       where (s.state, s.attempt, t.left_at) is distinct from (t.state, t.attempt, t.state_before))
    + (select count(*) from day d full join payments.merchant_day m using (merchant, day, currency)
       where (coalesce(d.attempts, 0), coalesce(d.declined, 0), coalesce(d.captured, 0), coalesce(d.captured, 0), 0) is distinct from
           (m.attempts, m.declined, m.authorized, m.captured, m.refunded))
    + (select count(*) from attempt a full join payments.outbox o on o.payload -> 'attempt' ->> 'id' = a.id::text
       where (a.intent::text, 'payment.' || a.news, a.kind, a.state, a.amount) is distinct from
           (o.aggregateid, o.type, o.payload -> 'attempt' ->> 'kind', o.payload -> 'attempt' ->> 'outcome',
               (o.payload -> 'attempt' ->> 'amount')::bigint))
    + abs((select count(*) from attempt) - (select count(*) from payments.outbox))
        as broken
from payments.intent i
left join sum s on s.intent = i.id
