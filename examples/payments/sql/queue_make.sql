-- An endpoint's queue: notifications don't wait for each other, and those that were refused too often are kept.
select status from hotrow.create_queue($1, strict_groups => false, max_attempts => $2)
