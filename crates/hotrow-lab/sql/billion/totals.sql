-- The counters as the function of the hotrow schema shows them: counter, value, version.
select split_part(c.counter, ' ', 3)::int, now.value, now.version
from hotrow.counter c cross join lateral hotrow.counter(c.counter) now
