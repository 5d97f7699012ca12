-- Settings that decide whether an acknowledged commit is on disk and in the binary log.
select if(@@log_bin, @@binlog_format, 'OFF'), @@sync_binlog, @@innodb_flush_log_at_trx_commit
