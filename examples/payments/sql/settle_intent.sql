-- The intent gets the state that follows from its attempt's outcome, with sums that depend on the attempt only.
update payments.intent set state = $4, version = version + 1, captured = $5, refunded = $6,
    authorization_id = $7, gateway = $8, updated_at = now()
where id = $1 and version = $2 and state = $3
