-- The updates that the rows have counted, and the rows that are missing, unexpected or impossible.
select sum(v), abs(count(*) - :rows) + sum(v < 0)
from hot.row
