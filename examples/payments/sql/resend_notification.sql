-- A dead one is told again.
update payments.notification set state = 'pending', tries = 0, due_at = now()
where event = $1 and endpoint = $2 and state = 'dead'
