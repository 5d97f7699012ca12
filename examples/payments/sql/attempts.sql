-- All attempts of one intent, in order.
select id, intent, intent_version, kind, gateway, authorization_id, amount, merchant, currency, intent_amount,
    captured_before, refunded_before, state, version, code, settled_on, valid_until, tries, created_at
from payments.attempt where intent = $1 order by intent_version limit $2
