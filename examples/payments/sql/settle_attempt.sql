-- Decides an attempt. The webhook, a worker and the request can all try this, and only one of them finds it undecided.
update payments.attempt set state = $3, version = version + 1, code = $4, settled_on = $5
where id = $1 and version = $2 and state in ('started', 'unknown')
