-- Three payments of one merchant as the service leaves them: one captured, one declined, one never confirmed.
insert into payments.intent (id, merchant, customer, mode, amount, currency, capture_at_once, state, version, captured,
    attempt) values
    ('00000000-0000-0000-0000-000000000001', 'm', 'c', 'upi', 100, 'INR', true, 'captured', 3, 100, '00000000-0000-0000-0000-000000000001'),
    ('00000000-0000-0000-0000-000000000002', 'm', 'c', 'upi', 200, 'INR', true, 'failed', 3, 0, '00000000-0000-0000-0000-000000000002'),
    ('00000000-0000-0000-0000-000000000003', 'm', 'c', 'upi', 300, 'INR', true, 'created', 1, 0, null);
insert into payments.attempt (id, intent, intent_version, kind, gateway, authorization_id, amount, merchant, currency,
    intent_amount, captured_before, refunded_before, state, settled_on, valid_until)
select id, id, 2, 'purchase', 'lotus', id, amount, 'm', 'INR', amount, 0, 0,
    case state when 'captured' then 'succeeded' else 'declined' end, current_date, now()
from payments.intent where state <> 'created';
insert into payments.transition (intent, version, state_before, state, attempt)
select id, 2, 'created', 'authorizing', id from payments.intent where state <> 'created'
union all
select id, 3, 'authorizing', state, id from payments.intent where state <> 'created';
insert into payments.merchant_day (merchant, day, currency, attempts, declined, authorized, captured)
values ('m', current_date, 'INR', 2, 1, 100, 100);
insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
select id, 'payment', id::text, case state when 'captured' then 'payment.captured' else 'payment.failed' end, '{}'
from payments.intent where state <> 'created'
