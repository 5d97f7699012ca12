select * from hotrow.reserve(:run, :buyer);
