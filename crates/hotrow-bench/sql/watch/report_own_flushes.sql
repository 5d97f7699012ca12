-- A session reports its flushes up to a second later. Those of the preparation were not delayed, and a short run would count
-- them as its own. PostgreSQL 14 has no function for it.
do $$
begin
    if current_setting('server_version_num')::int >= 150000 then
        perform pg_stat_force_next_flush();
    end if;
end
$$
