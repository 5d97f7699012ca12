-- Gives a connection the settings of its pool, as a client's SET does: RESET ALL removes them.
-- $1: the names. $2: the values, in the same order.
select pg_catalog.set_config(s.name, s.value, false)
  from rows from (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) s (name, value)
