-- Before a run: the snapshot is as far behind as it may be. All commands are increments by one, so the value is the version.
insert into hotrow.snapshot as kept (counter, version, value, at)
select counter, behind, behind, statement_timestamp()
from hotrow.setting, hotrow.counter, greatest(version - snapshot_every + 1, 0) as behind
where counter = 'restart'
on conflict (counter) do update set version = excluded.version, value = excluded.value, at = excluded.at;
