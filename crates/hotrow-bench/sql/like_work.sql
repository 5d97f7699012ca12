-- Sets the work of a statement to the microseconds in the setting hotrow_bench.work_us: measures the time of a checksum and
-- stores the number of bytes that takes as long.
do $$
declare
    began timestamptz;
    fastest float8 := 'infinity';
begin
    for attempt in 1..5 loop
        began := clock_timestamp();
        perform md5(repeat('x', 100000));
        fastest := least(fastest, extract(epoch from clock_timestamp() - began) * 1000000);
    end loop;
    update hotrow_bench.inv
    set work = least(current_setting('hotrow_bench.work_us')::float8 / greatest(fastest, 1) * 100000, 100000000)::int
    where work = 0 and current_setting('hotrow_bench.work_us')::float8 > 0;
end
$$;
