-- The columns of the unique indexes of a table, in order, each with the form of its values. A part of a column is no key.
select s.index_name, lower(s.column_name), case
        when s.sub_part is not null then 'other'
        when c.data_type in ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') then 'integer'
        when c.data_type in ('char', 'varchar') then 'text'
        else 'other' end
    from information_schema.statistics s join information_schema.columns c
        on c.table_schema = s.table_schema and c.table_name = s.table_name and c.column_name = s.column_name
    where s.table_schema = {database} and s.table_name = {table} and s.non_unique = 0
    order by s.index_name, s.seq_in_index
