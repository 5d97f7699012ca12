-- The number of dead letters, and the age in seconds of the oldest order that waits, of the first 1,000 queues together.
select coalesce(pg_catalog.sum(q.dead), 0)::pg_catalog.int8,
       coalesce(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-)
                                              pg_catalog.min(q.oldest)), 0)::pg_catalog.int8
  from hotrow.list_queues(''::pg_catalog.text, 1000::pg_catalog.int4) as q
