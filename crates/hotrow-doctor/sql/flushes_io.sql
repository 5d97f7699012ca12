-- WAL flushes since the start of the statistics, in version 18 and later.
select pg_catalog.sum((pg_catalog.to_json(i) operator(pg_catalog.->>) 'fsyncs'::pg_catalog.text)::pg_catalog.int8)::pg_catalog.int8
  from pg_catalog.pg_stat_io i
 where i.object operator(pg_catalog.=) 'wal'
