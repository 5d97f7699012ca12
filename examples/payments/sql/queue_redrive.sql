-- Sends a dead notification again.
select hotrow.redrive($1, 1, $2)
