-- How many messages are unread.
select unread from hotrow.unread($1) unread
