-- The intent takes the step that its attempt stands for; nothing if it has taken it, or is elsewhere by now.
update payments.intent set state = $4, version = version + 1, attempt = $5, updated_at = now()
where id = $1 and version = $2 and state = $3
