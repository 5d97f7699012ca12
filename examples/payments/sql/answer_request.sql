-- The answer, for repeated requests. The first answer is kept. A slow program whose request was taken over can write it
-- too, because it belongs to the same request.
update payments.request set status = $2, answer = $3 where key = $1 and status is null
