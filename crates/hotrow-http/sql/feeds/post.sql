-- Posts to all followers; merged with other calls.
select * from hotrow.post($1, $2, $3)
