\if :previous = 0
-- The text of the article. It is made once for each client, and every call sends it.
select repeat(md5('a'), 64) as content \gset
\set previous 1
\endif
