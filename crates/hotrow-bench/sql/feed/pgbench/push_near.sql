\set user random(1, 1024)
\set from :user + 1
select * from hotrow.push(:user, :from, :content);
