-- It has not: again after so many seconds, or never if it was the last attempt.
select outcome from hotrow.fail($1, $2, $3, make_interval(secs => $4))
