-- Releases the advisory locks of a lane's session. The gateway takes none. Changes nothing else.
select pg_catalog.pg_advisory_unlock_all()
