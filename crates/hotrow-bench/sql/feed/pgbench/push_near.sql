\if :previous = 0
-- The text of the article, once for each client, so that every call carries it.
select repeat(md5('a'), 64) as content \gset
\set previous 1
\endif
\set user random(1, 1024)
\set from :user + 1
select * from hotrow.push(:user, :from, :content);
