-- Takes over a request whose program has crashed or is too slow.
update payments.request set run = $3, started_at = now() where key = $1 and run = $2 and status is null
