select * from hotrow.take(':run', 100, '30 s')
