-- The first call of a fresh connection.
select value, version from hotrow.increment('restart')
