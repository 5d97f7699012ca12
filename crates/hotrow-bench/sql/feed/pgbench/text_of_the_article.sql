\if :previous = 0
-- The text of the article, once for each client, so that every call carries it.
select repeat(md5('a'), 64) as content \gset
\set previous 1
\endif
