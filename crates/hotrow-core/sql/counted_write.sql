-- A write of which the client was told that it changes one row. If it changes another number of rows, it raises an error
-- (22P02, whose message has the text below), so that nothing of its transaction is committed. It returns no row.
with hotrow_write as (
{write}
returning 1)
select 1
from (select pg_catalog.count(*) as rows from hotrow_write) as found
where case when found.rows operator(pg_catalog.=) 1 then false
    else ('hotrow_told_one_row_found_' operator(pg_catalog.||) found.rows::pg_catalog.text)::pg_catalog.int4
        operator(pg_catalog.=) 0
    end
