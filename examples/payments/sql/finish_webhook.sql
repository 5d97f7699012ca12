-- The webhook was processed.
update payments.webhook set due_at = null where gateway = $1 and event = $2
