-- Whoever decodes the log for the one slot that is read, and whether it has come so far.
select s.active_pid, r.sent_lsn >= $1::text::pg_lsn
from pg_replication_slots s join pg_stat_replication r on r.pid = s.active_pid
