-- The endpoint is to be told an event; a duplicate if that is written down already.
select status from hotrow.enqueue($1, $2, $3)
