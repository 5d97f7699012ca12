-- Whether all transactions with IDs from $1 up to but not including $2 are known to be rolled back. The answer is false
-- if one is committed, prepared or too old to be known. All IDs belong to an earlier life of the server, so no
-- transaction is in progress.
select not exists (
    select from pg_catalog.generate_series($1::pg_catalog.int8, $2::pg_catalog.int8 operator(pg_catalog.-) 1) as id
     where coalesce(pg_catalog.pg_xact_status(id::pg_catalog.text::pg_catalog.xid8), '') operator(pg_catalog.<>) 'aborted')
