-- How a distributed hotrow schema divides the calls of a function over the nodes, as one JSON value; NULL if it does not. Runs only
-- if the pack is trusted (pack_trusted.sql) and has this function.
-- $1: the function's name.
select hotrow.distribution_of($1::pg_catalog.text)
