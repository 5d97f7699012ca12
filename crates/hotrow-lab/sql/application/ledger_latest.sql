-- Under the lock: the state before the next command.
select version, value from hotrow_bench.application_ledger where counter = $1 order by version desc limit 1
