-- The delivery failed. The order is due again after a delay, or dead after the last attempt.
select outcome from hotrow.fail($1, $2, $3, make_interval(secs => $4))
