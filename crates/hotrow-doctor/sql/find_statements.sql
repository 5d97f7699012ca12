-- Lets the next statements find pg_stat_statements in the schema of the extension, and anything else in pg_catalog.
-- $1: that schema, quoted by the server.
select pg_catalog.set_config('search_path', pg_catalog.concat('pg_catalog, ', $1::pg_catalog.text), false)
