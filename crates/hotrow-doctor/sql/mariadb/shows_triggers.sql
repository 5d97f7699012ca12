-- Whether the account has the privilege TRIGGER for a table. Without it, triggers are hidden.
select exists (select 1 from information_schema.user_privileges where privilege_type = 'TRIGGER' and grantee = {grantee})
    or exists (select 1 from information_schema.schema_privileges where privilege_type = 'TRIGGER' and grantee = {grantee}
        and table_schema = {database})
    or exists (select 1 from information_schema.table_privileges where privilege_type = 'TRIGGER' and grantee = {grantee}
        and table_schema = {database} and table_name = {table})
