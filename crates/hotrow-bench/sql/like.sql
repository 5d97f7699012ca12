-- The rows of a load like that of a doctor's report. The first rows are hot. A statement on a row computes the checksum of as
-- many bytes as its column `work` says.
create schema hotrow_bench;

create table hotrow_bench.inv (
    id    int    primary key,
    stock bigint not null,
    sold  bigint not null,
    work  int    not null default 0
) with (fillfactor = 80);
