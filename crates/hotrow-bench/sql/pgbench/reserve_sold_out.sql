\set buyer random(1, 100000)
select * from hotrow.reserve(:run, :buyer);
