-- The columns of a table, in lower case.
select lower(column_name) from information_schema.columns where table_schema = {database} and table_name = {table}
