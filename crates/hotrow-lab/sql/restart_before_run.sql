-- Before a run: the snapshot has the greatest allowed distance from the end of the log. All commands are increments by one,
-- so the value is the version.
delete from hotrow.snapshot where counter = 'restart';
insert into hotrow.snapshot (counter, version, value, at)
select counter, behind, behind, statement_timestamp()
from hotrow.setting, hotrow.counter, greatest(version - snapshot_every + 1, 0) as behind
where counter = 'restart';
