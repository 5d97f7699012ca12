-- Lets the next demo work in this database, without waiting for this connection to be gone.
select pg_advisory_unlock_all()
