-- A refusal, for whoever asks again. Only by the one who works on it still: who was taken over may have been refused
-- because the other one did the work.
update payments.request set status = $3, answer = $4 where key = $1 and run = $2 and status is null
