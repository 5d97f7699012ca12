-- A new intent. Inserts nothing if it exists.
insert into payments.intent (id, merchant, customer, mode, amount, currency, capture_at_once, state, version)
values ($1, $2, $3, $4, $5, $6, $7, 'created', 1)
on conflict (id) do nothing
