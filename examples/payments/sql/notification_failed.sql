-- The delivery failed. The notification is due again after a delay, or dead if there is no further delay; an operator can
-- then resend it. If an operator has resent it since it was claimed, it has no tries and is due now.
update payments.notification
set state = case when tries > 0 and $4::double precision is null then 'dead' else 'pending' end, error = $3,
    due_at = case when tries > 0 then now() + $4 * interval '1 second' else now() end, claimed_until = null
where event = $1 and endpoint = $2 and state = 'pending'
