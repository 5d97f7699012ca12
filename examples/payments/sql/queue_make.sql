-- The queue of an endpoint. Notifications do not wait for each other. After too many failures they are dead-lettered.
select status from hotrow.create_queue($1, strict_groups => false, max_attempts => $2)
