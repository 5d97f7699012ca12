\if :previous = 0
set names 'utf8';
set time zone 'UTC';
set search_path to "public";
\set previous 1
\endif
