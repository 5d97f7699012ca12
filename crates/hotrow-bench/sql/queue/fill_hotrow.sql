-- Before a run: orders in a queue of Hotrow, a thousand per call.
insert into hotrow_bench.begun values (current_setting('hotrow_bench.rows')::int);
select hotrow.create_queue(current_setting('hotrow_bench.run'));
do $$
begin
    for piece in 1 .. current_setting('hotrow_bench.rows')::int / 1000 loop
        perform from hotrow.enqueue_batch(
            array_fill(current_setting('hotrow_bench.run'), array[1000]),
            array(select gen_random_uuid() from generate_series(1, 1000)),
            array_fill('{"amount": 1}'::jsonb, array[1000]));
    end loop;
end
$$;
