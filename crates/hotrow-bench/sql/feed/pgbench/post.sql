\set author random(1, 64)
select * from hotrow.post(:author, :content);
