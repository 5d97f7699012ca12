-- The endpoint has it.
select outcome from hotrow.complete($1, $2)
