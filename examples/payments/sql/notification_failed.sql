-- It has not: again after so many seconds, or never if there is no such time: then a person may have it resent. One that a
-- person had resent since it was claimed has no tries: it is due now.
update payments.notification
set state = case when tries > 0 and $4::double precision is null then 'dead' else 'pending' end, error = $3,
    due_at = case when tries > 0 then now() + $4 * interval '1 second' else now() end, claimed_until = null
where event = $1 and endpoint = $2 and state = 'pending'
