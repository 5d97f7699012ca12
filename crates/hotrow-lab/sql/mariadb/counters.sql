-- Transactions in the binary log, and the groups in which they were written: with sync_binlog = 1, each group is one flush.
select
    (select variable_value from information_schema.global_status where variable_name = 'BINLOG_COMMITS'),
    (select variable_value from information_schema.global_status where variable_name = 'BINLOG_GROUP_COMMITS')
