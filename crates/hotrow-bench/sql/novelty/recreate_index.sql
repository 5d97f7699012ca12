-- An index of the table is replaced by another one with the same name.
begin;
drop index hotrow_bench.by_kind;
create index by_kind on hotrow_bench.inv (kind);
commit;
