-- The current wait event of each busy session, if it waits.
select coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*)
from pg_stat_activity
where backend_type = 'client backend' and state = 'active' and pid <> pg_backend_pid()
group by 1
