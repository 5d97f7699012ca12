-- A merchant's intents, the newest first, older than the one given.
select id, merchant, customer, mode, amount, currency, capture_at_once, state, version, attempt, authorization_id,
    gateway, captured, refunded, created_at, updated_at
from payments.intent where merchant = $1 and id < $2 order by id desc limit $3
