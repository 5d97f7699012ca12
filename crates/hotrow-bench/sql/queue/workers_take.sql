-- A worker's request: a hundred orders under a lease.
select * from hotrow.take(':run', 100, '30 s')
