-- The columns of a table, in lower case, what they have, whether they get generated numbers, and their bytes at most. Longer
-- texts are not returned from a lane.
select lower(column_name), case
        when data_type in ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') then 'integer'
        when data_type in ('char', 'varchar') and character_maximum_length <= 255 then 'text'
        else 'other' end, extra like '%auto_increment%',
        coalesce(character_octet_length, if(data_type in ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float',
            'double', 'bit', 'date', 'time', 'datetime', 'timestamp', 'year'), 70, 65536))
    from information_schema.columns where table_schema = {database} and table_name = {table}
