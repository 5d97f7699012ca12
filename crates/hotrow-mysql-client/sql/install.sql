-- What packing needs at the server. hotrow migrate runs it as an administrator, also after an upgrade. The routines run as their
-- definer.
create database if not exists hotrow;

-- The number of the last batch of each lane that has committed: the answer to a commit in doubt. The lane's name is random and
-- secret, so that nobody can mark another lane's batch.
create table if not exists hotrow.batch (
    lane varchar(64) character set ascii collate ascii_bin not null primary key,
    n bigint unsigned not null,
    opened timestamp not null default current_timestamp,
    key (opened)
) engine = innodb;

-- For ROW_COUNT() after a packed statement: an update of the first n rows. No packed statement changes more rows than there are.
create table if not exists hotrow.restored (i int not null primary key, v bigint not null) engine = innodb;
insert ignore into hotrow.restored with recursive n as (select 1 as i union all select i + 1 from n where i < 256) select i, 0 from n;

delimiter $$;

-- Gives the session's connection the diagnostics of a statement that changes no row and warns of nothing. A query would change
-- FOUND_ROWS(). A body that reads no table would leave the warnings before it.
create or replace procedure hotrow.clear() reads sql data sql security definer
    do (select count(*) from hotrow.restored where i = 0) $$;

-- The same for a statement that has changed n rows, which has to change as many.
create or replace procedure hotrow.restore(n int) modifies sql data sql security definer
    update hotrow.restored force index (primary) set v = v + 1 where i <= n $$;

-- Tells the caller this text as an error. A query would change FOUND_ROWS().
create or replace procedure hotrow.tell(t varchar(100) character set ascii) no sql sql security definer
    signal sqlstate '45000' set mysql_errno = 1644, message_text = t $$;

-- The names by which earlier gateways call the next one. They lack other routines that this one calls.
drop function if exists hotrow.rights $$;
drop function if exists hotrow.kept_rights $$;

-- The rights that a session of this user keeps if it logs in now: first those that it gets at its login, then those that it gets when
-- it enters a database. Others are read again for each statement. Binary text goes with the texts of every character set.
create or replace function hotrow.rights_of(name varchar(128)) returns binary(32) reads sql data sql security definer
    return concat(left(md5(concat_ws('|',
        (select group_concat(host, ':', user, ':', priv order by host, user) from mysql.global_priv
            where user in ('', name) or json_value(priv, '$.is_role')),
        (select group_concat(host, ':', user, ':', role order by host, user, role) from mysql.roles_mapping))), 16),
        left(md5(coalesce((select group_concat(host, ':', user, ':', db, ':', select_priv, insert_priv, update_priv, delete_priv,
            execute_priv order by host, user, db) from mysql.db where user in ('', name) or host = ''), '')), 16)) $$;

-- The same for the user of this session.
create or replace function hotrow.session_rights() returns binary(32) reads sql data sql security definer
    return hotrow.rights_of(left(user(), char_length(user()) - char_length(substring_index(user(), '@', -1)) - 1)) $$;

create or replace procedure hotrow.open_lane(l varchar(64) character set ascii) modifies sql data sql security definer
begin
    -- Rows of lanes whose gateway has ended. A lane in use holds a lock of its name.
    delete from hotrow.batch where opened < now() - interval 1 day and is_free_lock(concat('hotrow.', lane));
    insert into hotrow.batch (lane, n) values (l, 0) on duplicate key update opened = current_timestamp;
end $$;

create or replace procedure hotrow.mark(l varchar(64) character set ascii, b bigint unsigned)
    modifies sql data sql security definer
    -- Its time keeps the row while the lane is in use. After a restart of the server, no lane holds its lock for a moment.
    update hotrow.batch set n = b, opened = current_timestamp where lane = l $$;

create or replace function hotrow.marked(l varchar(64) character set ascii) returns bigint unsigned
    reads sql data sql security definer
    return (select n from hotrow.batch where lane = l) $$;

-- The facts about a table on which packing depends. A batch reads them before its commit, while its metadata locks keep them.
-- The last but one is the number of expressions that could see the session, such as the default connection_id(). The last one
-- stands for the columns and their types.
create or replace function hotrow.definition(s varchar(64), t varchar(64)) returns varchar(200)
    reads sql data sql security definer
    return (select concat_ws(':', f.engine, f.table_type, f.auto_increment is not null,
            (select count(*) from information_schema.triggers where event_object_schema = s and event_object_table = t),
            (select count(*) from information_schema.columns where table_schema = s and table_name = t
                and (generation_expression regexp '[a-z0-9_`][(]|@'
                    or column_default regexp '[a-z0-9_`][(]|@' and column_default not regexp '^current_timestamp[(][0-6]?[)]$'))
            + (select count(*) from information_schema.check_constraints where constraint_schema = s and table_name = t
                and check_clause regexp '[a-z0-9_`][(]|@' and check_clause not regexp '^json_valid[(]`[^`]*`[)]$'),
            (select sum(crc32(concat_ws(' ', column_name, column_type, is_nullable, extra))) from information_schema.columns
                where table_schema = s and table_name = t))
        from information_schema.tables f where f.table_schema = s and f.table_name = t) $$;

delimiter ;
