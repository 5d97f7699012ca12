-- The request did no work or failed. A repeated request takes over at once, with the same IDs.
update payments.request set started_at = '-infinity' where key = $1 and run = $2 and status is null
