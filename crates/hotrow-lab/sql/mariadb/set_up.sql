-- Rows that count their updates. Replicas and readers of the binary log have no part in creating them.
create database hot;
create table hot.row (id int primary key, v bigint not null) engine = innodb;
set sql_log_bin = 0;
insert into hot.row select seq, 0 from hot.seq_1_to_:rows;
set sql_log_bin = 1;
