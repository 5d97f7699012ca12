-- The state of a notification in the queue.
select state from hotrow.find_order($1, $2)
