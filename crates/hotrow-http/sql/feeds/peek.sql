-- Reads the next unread messages.
select entry_id, from_user, post_id, created_at, content from hotrow.peek($1, $2, $3)
