-- A page of the queues, with what they hold.
select queue, depth, ready, in_flight, processed, dead, enqueued, oldest, paused, enqueued_per_second, processed_per_second
from hotrow.list_queues($1, $2)
