-- Sends a notification again now. If a worker is sending it, it is sent again only if that fails, so never twice at once.
update payments.notification set state = 'pending', tries = 0, due_at = greatest(now(), claimed_until)
where event = $1 and endpoint = $2 and state <> 'delivered'
