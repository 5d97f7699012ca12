-- The next unread messages, which are unread no longer; merged with other calls.
select * from hotrow.consume($1, $2, $3)
