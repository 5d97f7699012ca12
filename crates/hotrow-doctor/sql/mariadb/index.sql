-- The columns of an index, in order.
select column_name from information_schema.statistics
    where table_schema = {database} and table_name = {table} and index_name = {index} order by seq_in_index
