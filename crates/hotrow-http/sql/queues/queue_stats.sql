-- Reads the statistics of a queue.
select depth, ready, in_flight, processed, dead, enqueued, oldest, paused, enqueued_per_second, processed_per_second
from hotrow.queue_stats($1)
