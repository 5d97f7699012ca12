-- All commands of a batch in one statement, numbered in the batch's order.
insert into hotrow_bench.application_log (counter, transaction_id, command, amount)
select $1::text, command.id, command.name, command.amount
from unnest($2::text[], $3::text[], $4::bigint[]) with ordinality as command (id, name, amount, position)
order by command.position
