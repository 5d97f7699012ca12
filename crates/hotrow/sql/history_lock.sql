-- Keeps the parts of the rings from being emptied: TRUNCATE would empty them in every snapshot.
lock table hotrow.ledger, hotrow.log_entry, hotrow.queue_order, hotrow.processed_order in access share mode
