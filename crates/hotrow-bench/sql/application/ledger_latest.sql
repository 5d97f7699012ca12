-- Under the lock: the state that the next command starts from.
select version, value from hotrow_bench.application_ledger where counter = $1 order by version desc limit 1
