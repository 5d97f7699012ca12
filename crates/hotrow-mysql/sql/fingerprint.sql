-- The session variables on which the effect of a statement by key can depend, and the rights that the session has got at its login.
-- The first letter says whether the session is in strict mode, and the rights follow. The text is empty if a lane cannot stand in for the session: its
-- answers would tell of its own transactions, READ COMMITTED is refused, or a wait for a lock undoes more than its statement.
call hotrow.tell(if(@@session_track_transaction_info <> 'OFF' or @@session_track_system_variables like '%last_gtid%'
    or @@session_track_system_variables like '%*%' or @@log_bin and @@binlog_format = 'STATEMENT'
    or @@innodb_rollback_on_timeout, '', concat(
    if(@@sql_mode like '%STRICT_TRANS_TABLES%' or @@sql_mode like '%STRICT_ALL_TABLES%', 's', '-'), hotrow.session_rights(),
    md5(concat_ws(_binary '|', coalesce(current_role(), ''), current_user(),
    coalesce(@@sql_mode, ''), coalesce(@@old_mode, ''), coalesce(@@time_zone, ''), coalesce(@@character_set_client, ''),
    coalesce(@@character_set_connection, ''), coalesce(@@character_set_results, ''), coalesce(@@collation_connection, ''),
    coalesce(@@collation_database, ''), coalesce(@@character_set_database, ''),
    coalesce(@@tx_isolation, ''), coalesce(@@tx_read_only, ''), coalesce(@@foreign_key_checks, ''),
    coalesce(@@unique_checks, ''), coalesce(@@check_constraint_checks, ''), coalesce(@@sql_auto_is_null, ''),
    coalesce(@@sql_safe_updates, ''), coalesce(@@sql_select_limit, ''), coalesce(@@max_statement_time, ''),
    coalesce(@@sql_log_bin, ''), coalesce(@@binlog_format, ''), coalesce(@@binlog_row_image, ''),
    coalesce(@@binlog_annotate_row_events, ''), coalesce(@@gtid_domain_id, ''), coalesce(@@server_id, ''),
    coalesce(@@skip_replication, ''), coalesce(@@div_precision_increment, ''), coalesce(@@default_week_format, ''),
    coalesce(@@lc_time_names, ''), coalesce(@@lc_messages, ''), coalesce(@@group_concat_max_len, ''),
    coalesce(@@max_allowed_packet, ''), coalesce(@@low_priority_updates, ''), coalesce(@@sql_big_selects, ''),
    coalesce(@@max_join_size, ''), coalesce(@@optimizer_switch, ''), coalesce(@@system_versioning_asof, ''),
    coalesce(@@innodb_strict_mode, ''), coalesce(@@sql_warnings, ''), coalesce(@@sql_notes, ''), coalesce(@@sql_if_exists,
    ''), coalesce(@@secure_timestamp, ''), coalesce(@@read_only, ''))))))
