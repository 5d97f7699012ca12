-- Returns the named functions that do not exist or that this user cannot execute.
select function
from pg_catalog.unnest($1::pg_catalog.text[]) as function
where pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(function), 'execute') is not true
