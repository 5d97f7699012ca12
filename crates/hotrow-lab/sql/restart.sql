-- One counter with a long command log, which `restart_fill.sql` inserts.
create schema hotrow_bench;
select hotrow.create_counter('restart', 'log');
