-- Nobody knows what became of it: never a failure until the gateway says so.
update payments.attempt set state = 'unknown', version = version + 1, code = $3
where id = $1 and version = $2 and state = 'started'
