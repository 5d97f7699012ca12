-- All that follows from it is written: no worker needs to look again.
update payments.attempt set due_at = null where id = $1
