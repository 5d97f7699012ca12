-- One counter whose command log is long; `restart_fill.sql` makes it so.
create schema hotrow_bench;
select hotrow.create_counter('restart', 'log');
