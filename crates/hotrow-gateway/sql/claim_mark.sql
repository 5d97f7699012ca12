-- Takes a mark for this connection. Returns its value and this connection's backend. The value is null if another backend has
-- the mark. There is no row if the mark has another owner now.
-- $1: the mark, with its generation.
select m.value, pg_catalog.concat_ws(' ', a.pid, extract(epoch from a.backend_start))
  from hotrow.claim_mark($1::pg_catalog.text) as m (value), pg_catalog.pg_stat_activity a
 where a.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()
