-- Consumes the next unread messages; merged with other calls.
select * from hotrow.consume($1, $2, $3)
