-- The request with a key, and whether the lease of the program that works on it has expired.
select fingerprint, run, intent, attempt, status, answer,
    started_at < now() - $2 * interval '1 second' as abandoned
from payments.request where key = $1
