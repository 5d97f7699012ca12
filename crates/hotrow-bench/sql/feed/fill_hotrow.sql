-- Before a run: messages in 1,024 inboxes of Hotrow, a thousand per call. Each call commits, because a transaction cannot
-- remove the old versions of an inbox's row that it has created.
do $$
begin
    for piece in 0 .. current_setting('hotrow_bench.rows')::int / 1000 - 1 loop
        perform from hotrow.push_batch(
            array(select 1 + (piece * 1000 + n) % 1024 from generate_series(1, 1000) n),
            array(select n from generate_series(1, 1000) n),
            array_fill(repeat(md5('a'), 64), array[1000]));
        commit;
    end loop;
end
$$;
