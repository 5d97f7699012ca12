-- The answer, for whoever asks again.
update payments.request set status = $3, answer = $4 where key = $1 and run = $2 and status is null
