-- The columns of a table, in lower case, and whether they have integers.
select lower(column_name), data_type in ('tinyint', 'smallint', 'mediumint', 'int', 'bigint')
    from information_schema.columns where table_schema = {database} and table_name = {table}
