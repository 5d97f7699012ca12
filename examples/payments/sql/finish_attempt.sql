-- All consequences of the attempt are written. No worker needs to look again.
update payments.attempt set due_at = null where id = $1
