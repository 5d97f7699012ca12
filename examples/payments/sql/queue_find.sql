-- Where a notification is, in the queue's words.
select state from hotrow.find_order($1, $2)
