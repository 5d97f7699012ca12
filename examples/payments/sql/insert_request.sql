-- The program that inserts the key works on the request.
insert into payments.request (key, fingerprint, run, intent, attempt) values ($1, $2, $3, $4, $5)
on conflict (key) do nothing
