-- The commands after a bookmark, in order.
select sequence, transaction_id, command, amount
from hotrow_bench.application_log
where counter = $1 and sequence > $2
order by sequence
