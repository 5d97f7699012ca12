-- A piece of the log: the commands from hotrow_bench.first to hotrow_bench.last, all of them increments by one.
insert into hotrow.log_entry (counter, version, part, command, amounts, at)
select 'restart', version, history_part, 'increment', '{1}', statement_timestamp()
from hotrow.setting,
    generate_series(current_setting('hotrow_bench.first')::int, current_setting('hotrow_bench.last')::int) as version;

update hotrow.counter
set version = current_setting('hotrow_bench.last')::bigint, last_at = statement_timestamp()
where counter = 'restart';
