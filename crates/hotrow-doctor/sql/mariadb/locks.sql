-- The locks that are waited for, and those that the waiting ones wait for. INNODB_LOCK_WAITS has a row for each pair of them, which
-- is too much for a crowd at one row.
select lock_id, lock_trx_id, lock_mode, lock_table, lock_index, left(lock_data, 300) from information_schema.innodb_locks limit 5000
