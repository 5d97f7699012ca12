-- Four payments of one merchant as the service leaves them: one captured, one declined, one never confirmed, and one that was
-- captured after a payment gateway had not done it.
insert into payments.intent (id, merchant, customer, mode, amount, currency, capture_at_once, state, version, captured,
    attempt) values
    ('00000000-0000-0000-0000-000000000001', 'm', 'c', 'upi', 100, 'INR', true, 'captured', 3, 100, '00000000-0000-0000-0000-000000000001'),
    ('00000000-0000-0000-0000-000000000002', 'm', 'c', 'upi', 200, 'INR', true, 'failed', 3, 0, '00000000-0000-0000-0000-000000000002'),
    ('00000000-0000-0000-0000-000000000003', 'm', 'c', 'upi', 300, 'INR', true, 'created', 1, 0, null),
    ('00000000-0000-0000-0000-000000000004', 'm', 'c', 'upi', 400, 'INR', true, 'captured', 5, 400, '00000000-0000-0000-0000-000000000014');
insert into payments.attempt (id, intent, intent_version, kind, gateway, authorization_id, amount, merchant, currency,
    intent_amount, captured_before, refunded_before, state, settled_on, valid_until)
select a.id, i.id, a.version, 'purchase', 'lotus', a.id, i.amount, 'm', 'INR', i.amount, 0, 0, a.state, current_date, now()
from (values
    ('00000000-0000-0000-0000-000000000001'::uuid, 100, 2, 'succeeded'),
    ('00000000-0000-0000-0000-000000000002', 200, 2, 'declined'),
    ('00000000-0000-0000-0000-000000000004', 400, 2, 'not_executed'),
    ('00000000-0000-0000-0000-000000000014', 400, 4, 'succeeded')) a (id, amount, version, state)
join payments.intent i on i.amount = a.amount;
insert into payments.transition (intent, version, state_before, state, attempt)
select intent, intent_version, 'created', 'authorizing', id from payments.attempt
union all
select intent, intent_version + 1, 'authorizing',
    case state when 'succeeded' then 'captured' when 'declined' then 'failed' else 'created' end, id from payments.attempt;
insert into payments.merchant_day (merchant, day, currency, attempts, declined, authorized, captured)
values ('m', current_date, 'INR', 4, 2, 500, 500), ('m', current_date + 1, 'INR', 0, 0, 0, 0);
insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
select id, 'payment', intent::text,
    case state when 'succeeded' then 'payment.captured' when 'declined' then 'payment.failed' else 'payment.not_executed' end,
    jsonb_build_object('attempt', jsonb_build_object('id', id, 'kind', kind, 'amount', amount, 'outcome', state))
from payments.attempt
