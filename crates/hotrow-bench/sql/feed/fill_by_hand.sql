-- Before a run: the same number of messages as in Hotrow's inboxes, in the same order. They are inserted directly into the
-- partitions, because `push` would take minutes.
do $$
begin
    for i in 0 .. 63 loop
        execute format(
            'insert into hotrow_bench.feed_%1$s (uid, from_uid, ts, content, status)
             select 1 + number %% 1024, number, clock_timestamp()::timestamp, repeat(md5(''a''), 64), 0
             from generate_series((%1$s + 63) %% 64, %2$s - 1, 64) as number',
            i, current_setting('hotrow_bench.rows'));
    end loop;
end
$$;
