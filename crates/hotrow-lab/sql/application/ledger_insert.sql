-- All entries of a batch in one statement.
insert into hotrow_bench.application_ledger (counter, version, transaction_id, command, amount, value, returned)
select $1::text, entry.*
from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) as entry
