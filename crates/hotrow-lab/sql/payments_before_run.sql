-- Each run has its own service, which begins without tables.
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'payments_outbox';
drop schema if exists payments cascade;
drop publication if exists payments_outbox
