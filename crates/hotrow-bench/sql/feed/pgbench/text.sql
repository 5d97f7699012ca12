\if :previous = 0
-- Random digits, which do not compress. They are made once for each client, and every call sends this text.
select string_agg(md5(random()::text), '') as content from generate_series(1, 64) \gset
\set previous 1
\endif
