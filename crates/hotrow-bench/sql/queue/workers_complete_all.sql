-- What a worker says when it is done with them.
select * from hotrow.complete_all(':run', $1)
