-- The table is replaced by another one with the same name, columns, indexes and rows.
begin;
lock table hotrow_bench.inv;
create table hotrow_bench.next (like hotrow_bench.inv including all);
insert into hotrow_bench.next select * from hotrow_bench.inv;
drop table hotrow_bench.inv;
alter table hotrow_bench.next rename to inv;
commit;
