-- The notification of an event to an endpoint. Returns `duplicate` if it exists.
select status from hotrow.enqueue($1, $2, $3)
