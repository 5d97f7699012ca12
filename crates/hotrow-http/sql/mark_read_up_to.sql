-- Consumes the messages up to one of them.
select marked from hotrow.mark_read_up_to($1, $2) marked
