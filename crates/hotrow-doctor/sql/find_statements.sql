-- Lets the next statements find pg_stat_statements in the schema of the extension and nowhere else.
-- $1: that schema, quoted.
select pg_catalog.set_config('search_path', $1::pg_catalog.text, false)
