-- What the counter says: how many commands there were, and whether its value is what so many increments by one come to.
select version as done, (value <> version)::int::bigint as broken from hotrow.counter('restart')
