select * from hotrow.complete_all(':run', $1)
