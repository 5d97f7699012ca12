-- The speed of the server's core: the microseconds of a small piece of work. The subquery runs between the two readings of
-- the clock, because the expression is evaluated from left to right.
select (pg_catalog.date_part('epoch',
           (case when pg_catalog.array_length(p.work, 1) operator(pg_catalog.=) 2 then pg_catalog.clock_timestamp() end)
           operator(pg_catalog.-) p.begun) operator(pg_catalog.*) 1000000::pg_catalog.float8)::pg_catalog.float8
  from (
       select b.begun,
              array[b.begun::pg_catalog.text,
                    (select pg_catalog.count(*)::pg_catalog.text
                       from pg_catalog.generate_series(1, 200) g (n)
                      where pg_catalog.md5(g.n::pg_catalog.text) operator(pg_catalog.>) '')] as work
         from (select pg_catalog.clock_timestamp() as begun offset 0) b
      offset 0
       ) p
