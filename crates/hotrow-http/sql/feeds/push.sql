-- Pushes a message into one inbox; merged with other calls.
select * from hotrow.push($1, $2, $3, $4, $5)
