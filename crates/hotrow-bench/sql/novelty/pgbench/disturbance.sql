\set kind random(1, 6)
\if :kind = 1
begin;
create temporary table scratch (id int) on commit drop;
commit;
\elif :kind = 2
truncate hotrow_bench.scratch;
\elif :kind = 3
comment on table hotrow_bench.scratch is 'used by the disturbance';
\elif :kind = 4
grant select on hotrow_bench.scratch to public;
\elif :kind = 5
do $$ begin perform 1; end $$;
\else
analyze hotrow_bench.scratch;
\endif
\sleep 50 ms
