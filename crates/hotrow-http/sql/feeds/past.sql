-- Reads a page of what an inbox has kept.
select entry_id, from_user, post_id, created_at, content, consumed from hotrow.past($1, $2, $3)
