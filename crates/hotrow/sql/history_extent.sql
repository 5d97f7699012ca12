-- The first versions in the history of counter $1, and the last snapshot at or before version $2.
select c.strategy, c.version,
    (select min(l.version) from hotrow.ledger l where l.counter = c.counter) as first_entry,
    (select e.version - cardinality(e.amounts) + 1 from hotrow.log_entry e where e.counter = c.counter
        order by e.version limit 1) as first_command,
    (select min(s.version) from hotrow.snapshot s where s.counter = c.counter) as first_snapshot,
    (select max(s.version) from hotrow.snapshot s where s.counter = c.counter and s.version <= $2) as nearest_snapshot
from hotrow.counter c where c.counter = $1
