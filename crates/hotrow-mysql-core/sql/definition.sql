-- The same as hotrow.definition(s, t), for a program that does not need the routines: the engine, the type of the table, whether a
-- column has generated numbers, the number of triggers, that of expressions that could see the session, the columns and their types.
select concat_ws(':', f.engine, f.table_type, f.auto_increment is not null,
            (select count(*) from information_schema.triggers where event_object_schema = {database} and event_object_table = {table}),
            (select count(*) from information_schema.columns where table_schema = {database} and table_name = {table}
                and (generation_expression regexp '[a-z0-9_`][(]|@'
                    or column_default regexp '[a-z0-9_`][(]|@' and column_default not regexp '^current_timestamp[(][0-6]?[)]$'))
            + (select count(*) from information_schema.check_constraints where constraint_schema = {database} and table_name = {table}
                and check_clause regexp '[a-z0-9_`][(]|@' and check_clause not regexp '^json_valid[(]`[^`]*`[)]$'),
            (select sum(crc32(concat_ws(' ', column_name, column_type, is_nullable, extra))) from information_schema.columns
                where table_schema = {database} and table_name = {table}))
        from information_schema.tables f where f.table_schema = {database} and f.table_name = {table}
