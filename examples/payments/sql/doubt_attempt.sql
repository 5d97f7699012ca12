-- The outcome is unknown. It is not a failure until the gateway reports one.
update payments.attempt set state = 'unknown', version = version + 1, code = $3
where id = $1 and version = $2 and state = 'started'
