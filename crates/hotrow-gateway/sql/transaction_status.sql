-- What became of a transaction: in progress, committed, aborted, or null when it is too long ago. A server that replays
-- another's log says so instead, since it does not know yet what it will know.
select case when pg_catalog.pg_is_in_recovery() then 'in recovery'
            else pg_catalog.pg_xact_status($1::pg_catalog.xid8) end
