-- The objects of the change stream on the server: the table's publication and the slot. The table's owner or a superuser
-- creates them once, before the first event. All later events are streamed, even if the connector ends before it has
-- stored its first position.
create publication payments_outbox for table payments.outbox with (publish = 'insert');
select from pg_create_logical_replication_slot('payments_outbox', 'pgoutput');
