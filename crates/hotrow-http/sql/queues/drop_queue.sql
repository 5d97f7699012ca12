-- Drops a queue.
select status from hotrow.drop_queue($1)
