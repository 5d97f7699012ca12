-- The number of commands of the counter, and whether its value is the sum of this number of increments by one.
select version as done, (value <> version)::int::bigint as broken from hotrow.counter('restart')
