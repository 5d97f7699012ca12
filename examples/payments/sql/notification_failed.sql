-- It has not: again after so many seconds, or never if there is no such time: then a person may have it resent.
update payments.notification
set state = case when $4::double precision is null then 'dead' else 'pending' end,
    error = $3, due_at = now() + $4 * interval '1 second'
where event = $1 and endpoint = $2 and state = 'pending'
