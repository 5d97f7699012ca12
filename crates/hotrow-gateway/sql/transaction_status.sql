-- The outcome of a transaction: in progress, committed, aborted, or null if it is too old. A server in recovery reports
-- that instead, because it may not have replayed the outcome yet.
select case when pg_catalog.pg_is_in_recovery() then 'in recovery'
            else pg_catalog.pg_xact_status($1::pg_catalog.xid8) end
