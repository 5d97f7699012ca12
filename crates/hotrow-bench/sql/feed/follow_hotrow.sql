-- Before a run: 64 authors with a thousand followers each among 16,384 users.
do $$
begin
    for author in 1 .. 64 loop
        perform from hotrow.follow_batch(
            array(select 1000 + (author * 257 + follower * 13) % 16384 from generate_series(1, 1000) follower),
            array_fill(author::bigint, array[1000]), array_fill(0, array[1000]));
    end loop;
end
$$;
