-- The intent takes the step of its attempt. Changes nothing if the intent has taken this step or another one already.
update payments.intent set state = $4, version = version + 1, attempt = $5, updated_at = now()
where id = $1 and version = $2 and state = $3
