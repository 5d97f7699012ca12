-- The rows and the mark of the simulated server on a real one.
create domain natural_number as int check (value >= 0);

create table stock (id int primary key, n int not null);
insert into stock select id, 4 from generate_series(0, 2) id;

create table inserted ();

create sequence mark;

create function is_below_zero() returns trigger language plpgsql as $$
begin
    raise exception 'below zero';
end $$;
create constraint trigger is_below_zero after update on stock deferrable initially deferred
    for each row when (new.n < 0) execute function is_below_zero();
