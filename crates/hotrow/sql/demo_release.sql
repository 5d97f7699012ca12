-- Lets the next demo use this database before this connection is closed.
select pg_advisory_unlock_all()
