-- Lists a page of the entries of an inbox.
select entry_id, from_user, post_id, created_at, content, consumed from hotrow.past($1, $2, $3)
