-- One intent.
select id, merchant, customer, mode, amount, currency, capture_at_once, state, version, attempt, authorization_id,
    gateway, captured, refunded, created_at, updated_at
from payments.intent where id = $1
