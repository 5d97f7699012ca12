-- If this inserts a row, the step belongs to this program: no other attempt can have the same version of the intent.
insert into payments.attempt (id, intent, intent_version, kind, gateway, authorization_id, amount, merchant, currency,
    intent_amount, captured_before, refunded_before, valid_until, due_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + $14 * interval '1 second')
on conflict (intent, intent_version) do nothing
