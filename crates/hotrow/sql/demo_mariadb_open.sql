-- The shop of `hotrow demo --mysql` on a private server: one ordinary table, the gateway's user, and the buyers' user.
create database hotrow_demo;
create table hotrow_demo.item (
    id int primary key,
    name varchar(20),
    stock int not null check (stock >= 0),
    sold int not null
) engine = innodb;
insert into hotrow_demo.item values (1, 'phone', 0, 0);
create user gate@'127.0.0.1' identified via mysql_native_password using password('gates-password');
grant select, execute on *.* to gate@'127.0.0.1';
create user buyer@'127.0.0.1' identified via mysql_native_password using password('buyers-password');
grant select, update on hotrow_demo.* to buyer@'127.0.0.1';
grant execute on hotrow.* to buyer@'127.0.0.1';
