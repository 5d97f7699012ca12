-- The row versions of one table that sessions wait for, and the visible rows of one of its pages.
-- Names cannot be parameters: row_query.rs writes the quoted names of the table and its key into the text below.
-- $1: the table's OID. $2, $3: the first position of the page and of the page after it, or nulls.
-- The statement's snapshot is older than its look at the locks. A version that a transaction is changing is therefore
-- visible, unless that transaction has committed in between.
-- concat calls a type's output function. A cast could call a user's function.
with waited as materialized (
    select pg_catalog.concat('(', l.page, ',', l.tuple, ')')::pg_catalog.tid as at, pg_catalog.count(*) as sessions
      from pg_catalog.pg_locks l
     where l.locktype operator(pg_catalog.=) 'tuple'
       and l.relation operator(pg_catalog.=) $1::pg_catalog.text::pg_catalog.oid
       and l.database operator(pg_catalog.=) (
               select d.oid from pg_catalog.pg_database d where d.datname operator(pg_catalog.=) pg_catalog.current_database())
     group by 1
     limit 200
)
select t.ctid::pg_catalog.text,
       t.xmin::pg_catalog.text,
       (select w.sessions from waited w where w.at operator(pg_catalog.=) t.ctid),
       {key}
  from only {table} t
 where t.ctid operator(pg_catalog.=) any (array(select w.at from waited w))
union all
select p.ctid, p.xmin, 0, p.key
  from (
       select t.ctid::pg_catalog.text as ctid, t.xmin::pg_catalog.text as xmin, {key} as key
         from only {table} t
        where t.ctid operator(pg_catalog.>=) $2::pg_catalog.text::pg_catalog.tid
          and t.ctid operator(pg_catalog.<) $3::pg_catalog.text::pg_catalog.tid
        limit 300
       ) p
