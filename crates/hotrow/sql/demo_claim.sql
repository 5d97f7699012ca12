-- One demo per database: a second one would drop the first one's schema. If a demo is killed, its lock ends with its
-- connection.
select pg_try_advisory_lock(hashtext('hotrow demo'))
