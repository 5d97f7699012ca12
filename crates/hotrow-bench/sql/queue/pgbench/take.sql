select * from hotrow.take(:run, 1, null);
