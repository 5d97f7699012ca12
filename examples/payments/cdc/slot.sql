-- What a change stream needs on the server, as its owner or a superuser creates it, once, before the first event: the table's
-- publication and the slot. Events are streamed from here on, whatever happens to the connector before it has noted its first place.
create publication payments_outbox for table payments.outbox with (publish = 'insert');
select from pg_create_logical_replication_slot('payments_outbox', 'pgoutput');
