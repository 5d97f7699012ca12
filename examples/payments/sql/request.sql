-- What is known of a key, and whether the one who works on it has had long enough.
select fingerprint, run, intent, attempt, status, answer,
    started_at < now() - $2 * interval '1 second' as abandoned
from payments.request where key = $1
