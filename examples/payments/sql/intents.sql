-- A merchant's intents that are older than the given one, the newest first.
select id, merchant, customer, mode, amount, currency, capture_at_once, state, version, attempt, authorization_id,
    gateway, captured, refunded, created_at, updated_at
from payments.intent where merchant = $1 and id < $2 order by id desc limit $3
