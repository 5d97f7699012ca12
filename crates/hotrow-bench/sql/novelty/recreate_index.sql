-- An index of the table is replaced by another one with the same name.
begin;
drop index hotrow_bench.by_note;
create index by_note on hotrow_bench.inv (note);
commit;
