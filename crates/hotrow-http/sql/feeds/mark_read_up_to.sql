-- Messages up to one are unread no longer.
select marked from hotrow.mark_read_up_to($1, $2) marked
