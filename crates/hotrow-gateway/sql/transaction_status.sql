-- What became of a transaction: in progress, committed, aborted, or null when it is too long ago.
select pg_catalog.pg_xact_status($1::pg_catalog.xid8)
