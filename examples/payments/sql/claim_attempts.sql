-- Unfinished attempts, either undecided or decided ones. A claim moves the time of the next look to the next delay, with
-- a random deviation, so that attempts that failed at one time are not looked at again at one time.
update payments.attempt a
set tries = a.tries + 1,
    due_at = now() + ($1::double precision[])[least(a.tries + 2, cardinality($1))] * (0.9 + 0.2 * random())
        * interval '1 second'
from (
    select id from payments.attempt
    where due_at <= now() and (state in ('started', 'unknown')) = $3 order by due_at limit $2
    for update skip locked
) due
where a.id = due.id
returning a.id, a.intent, a.intent_version, a.kind, a.gateway, a.authorization_id, a.amount, a.merchant, a.currency,
    a.intent_amount, a.captured_before, a.refunded_before, a.state, a.version, a.code, a.settled_on, a.valid_until,
    a.tries, a.created_at
