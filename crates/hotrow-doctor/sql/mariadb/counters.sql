-- The counters of the server whose change during a run is reported.
select lower(variable_name), variable_value from information_schema.global_status
    where variable_name in ('binlog_commits', 'binlog_group_commits', 'innodb_os_log_fsyncs', 'innodb_data_fsyncs',
        'innodb_row_lock_waits', 'innodb_row_lock_time', 'innodb_deadlocks', 'com_insert', 'com_update', 'com_delete', 'com_replace',
        'com_insert_select', 'com_update_multi', 'com_delete_multi', 'com_replace_select', 'queries', 'threads_connected')
