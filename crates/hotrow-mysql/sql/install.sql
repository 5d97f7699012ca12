-- What packing needs at the server. Run it once as an administrator: mariadb < install.sql. The routines run as their definer.
create database if not exists hotrow;

-- The number of the last batch of each lane that has committed: the answer to a commit in doubt. The lane's name is random and
-- secret, so that nobody can mark another lane's batch.
create table if not exists hotrow.batch (
    lane varchar(64) character set ascii collate ascii_bin not null primary key,
    n bigint unsigned not null,
    opened timestamp not null default current_timestamp,
    key (opened)
) engine = innodb;

-- For ROW_COUNT() after a packed statement: an update of the first n rows.
create table if not exists hotrow.restored (i int not null primary key, v bigint not null) engine = innodb;
insert ignore into hotrow.restored values (1, 0), (2, 0);

delimiter $$;

-- Gives the session's connection the diagnostics that its last packed statement would have left there: no warnings, and n rows.
create or replace procedure hotrow.restore(n int) modifies sql data sql security definer
    update hotrow.restored set v = v + 1 where i <= n $$;

create or replace procedure hotrow.open_lane(l varchar(64) character set ascii) modifies sql data sql security definer
begin
    -- Rows of lanes whose gateway has ended. A lane in use holds a lock of its name.
    delete from hotrow.batch where opened < now() - interval 1 day and is_free_lock(concat('hotrow.', lane));
    insert into hotrow.batch (lane, n) values (l, 0) on duplicate key update opened = current_timestamp;
end $$;

create or replace procedure hotrow.mark(l varchar(64) character set ascii, b bigint unsigned)
    modifies sql data sql security definer
    update hotrow.batch set n = b where lane = l $$;

create or replace function hotrow.marked(l varchar(64) character set ascii) returns bigint unsigned
    reads sql data sql security definer
    return (select n from hotrow.batch where lane = l) $$;

-- The facts about a table on which packing depends. A batch reads them before its commit, while its metadata locks keep them.
create or replace function hotrow.definition(s varchar(64), t varchar(64)) returns varchar(200)
    reads sql data sql security definer
    return (select concat_ws(':', f.engine, f.table_type, f.auto_increment is not null,
            (select count(*) from information_schema.triggers where event_object_schema = s and event_object_table = t))
        from information_schema.tables f where f.table_schema = s and f.table_name = t) $$;

delimiter ;
