-- The doctor's session and account, and the settings on which packing depends.
select database(), current_user(), connection_id(), @@log_bin, @@global.binlog_format, @@innodb_rollback_on_timeout,
    @@global.session_track_transaction_info <> 'OFF' or @@global.session_track_system_variables like '%last_gtid%'
        or @@global.session_track_system_variables like '%*%'
