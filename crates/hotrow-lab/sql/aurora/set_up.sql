-- The tables of a payment service on MariaDB. All payments are for one merchant, whose row they share.
create database aurora;
create table aurora.request (id bigint primary key, payment bigint not null) engine = innodb;
create table aurora.payment (
    id bigint primary key,
    merchant int not null,
    amount bigint not null,
    state varchar(20) not null
) engine = innodb;
create table aurora.transition (
    payment bigint not null,
    n int not null,
    state varchar(20) not null,
    primary key (payment, n)
) engine = innodb;
create table aurora.attempt (
    id bigint primary key,
    payment bigint not null,
    state varchar(20) not null,
    reference bigint
) engine = innodb;
create table aurora.merchant (id int primary key, payments bigint not null, amount bigint not null) engine = innodb;
create table aurora.outbox (id bigint primary key, payment bigint not null, event varchar(20) not null) engine = innodb;
insert into aurora.merchant values (1, 0, 0);
