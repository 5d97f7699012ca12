-- Counts unread messages.
select unread from hotrow.unread($1) unread
