-- The doctor's session: it writes nothing, waits for no lock, and ends a query that takes long. Names come in backticks.
set session sql_mode = '', sql_quote_show_create = 1, tx_read_only = 1, autocommit = 1, lock_wait_timeout = 1,
    innodb_lock_wait_timeout = 1, max_statement_time = 5, sql_select_limit = default, group_concat_max_len = default;
