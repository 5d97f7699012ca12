\set user random(1, 2000000000)
\set from :user + 1
select * from hotrow.push(:user, :from, :content);
