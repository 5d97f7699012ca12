-- Lists a page of the queues, with their statistics.
select queue, depth, ready, in_flight, processed, dead, enqueued, oldest, paused, enqueued_per_second, processed_per_second
from hotrow.list_queues($1, $2)
