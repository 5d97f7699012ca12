-- The dependent service has the notification.
update payments.notification set state = 'delivered', due_at = null, error = null, delivered_at = now()
where event = $1 and endpoint = $2 and state = 'pending'
