-- Enqueues many orders in one queue, with one answer for each, in their order; merged with other calls.
select * from hotrow.enqueue_all($1, $2)
