-- The one who worked on it has died, or is so slow that it makes no difference.
update payments.request set run = $3, started_at = now() where key = $1 and run = $2 and status is null
