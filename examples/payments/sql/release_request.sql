-- Nothing that counts was done, or it went wrong: whoever asks again takes over at once, with the same ids.
update payments.request set started_at = '-infinity' where key = $1 and run = $2 and status is null
