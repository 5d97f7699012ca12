-- The number of transactions that the server has written to its binary log.
select variable_value from information_schema.global_status where variable_name = 'BINLOG_COMMITS'
