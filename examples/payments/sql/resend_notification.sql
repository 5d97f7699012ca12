-- Told again now, or, while a worker tells it, as soon as that has failed: never twice at once.
update payments.notification set state = 'pending', tries = 0, due_at = greatest(now(), claimed_until)
where event = $1 and endpoint = $2 and state <> 'delivered'
