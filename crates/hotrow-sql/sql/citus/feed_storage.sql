-- How a shard stores feeds. Its tables have no partitions, because the shards themselves divide the users.
alter table hotrow.inbox set (fillfactor = 50);
alter table hotrow.reader set (fillfactor = 50);
alter table hotrow.author set (fillfactor = 50);
alter table hotrow.follow set (fillfactor = 90);
alter table hotrow.inbox_entry alter content set storage main;
alter table hotrow.post alter content set storage main;
do $$
begin
    -- Some servers are built without it.
    if exists (select from pg_catalog.pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) then
        alter table hotrow.inbox_entry alter content set compression lz4;
        alter table hotrow.post alter content set compression lz4;
    end if;
end
$$;
