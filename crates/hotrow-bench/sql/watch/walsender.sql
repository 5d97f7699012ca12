-- The process that decodes the WAL for the active slot, and whether it has reached a position. A standby has a slot too,
-- for which no WAL is decoded.
select s.active_pid, r.sent_lsn >= $1::text::pg_lsn
from pg_replication_slots s join pg_stat_replication r on r.pid = s.active_pid
where s.slot_type = 'logical'
