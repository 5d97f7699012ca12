\if :previous = 0
-- Random digits, which don't compress; once for each client, so that every call carries its text.
select string_agg(md5(random()::text), '') as content from generate_series(1, 64) \gset
\set previous 1
\endif
