-- The last statement of every batch of writes: the id of the transaction it runs in, none if nothing was written.
-- It arrives before the commit begins, so that after a lost connection the server can be asked what became of it.
select pg_catalog.pg_current_xact_id_if_assigned()
