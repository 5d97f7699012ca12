-- A refusal, for repeated requests. Only the program that still works on the request writes it. If the request was taken
-- over, the refusal may result from the work of the other program.
update payments.request set status = $3, answer = $4 where key = $1 and run = $2 and status is null
