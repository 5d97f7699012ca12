-- InnoDB's open transactions. The server shows them and their locks as they were until nobody has asked for a tenth of a second.
select trx_id, trx_mysql_thread_id, trx_requested_lock_id, trx_query is not null, trx_rows_modified > 0,
        greatest(timestampdiff(second, trx_started, now()), 0)
    from information_schema.innodb_trx where trx_mysql_thread_id <> connection_id() limit 5000
