-- One demo per database: the second one would remove the first one's schema. A killed demo's lock goes with its
-- connection.
select pg_try_advisory_lock(hashtext('hotrow demo'))
