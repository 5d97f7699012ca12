-- Told again, whatever became of it before.
update payments.notification set state = 'pending', tries = 0, due_at = now() where event = $1 and endpoint = $2
