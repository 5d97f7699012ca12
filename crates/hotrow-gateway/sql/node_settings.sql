-- The version of the server, and the settings that decide what a statement means and how its answer looks. A statement can
-- run on another node only if they are equal there. The connection for questions has its own timeouts, so theirs are those of the
-- login.
select pg_catalog.current_setting('server_version_num'),
       pg_catalog.string_agg(s.name operator(pg_catalog.||) '=' operator(pg_catalog.||)
                             case when s.name operator(pg_catalog.=) any ('{lock_timeout,statement_timeout}'::pg_catalog.text[])
                                  then s.reset_val else s.setting end, ' ' order by s.name)
  from pg_catalog.pg_settings s
 where s.name operator(pg_catalog.=) any (array[
           'array_nulls', 'backslash_quote', 'bytea_output', 'check_function_bodies', 'client_encoding', 'DateStyle',
           'default_text_search_config', 'default_transaction_deferrable', 'default_transaction_isolation',
           'default_transaction_read_only', 'escape_string_warning', 'extra_float_digits', 'IntervalStyle', 'lc_collate',
           'lc_ctype', 'lc_messages', 'lc_monetary', 'lc_numeric', 'lc_time', 'lock_timeout', 'operator_precedence_warning',
           'quote_all_identifiers', 'role', 'row_security', 'search_path', 'server_encoding', 'session_replication_role',
           'standard_conforming_strings', 'statement_timeout', 'synchronous_commit', 'TimeZone', 'timezone_abbreviations',
           'transform_null_equals', 'xmlbinary', 'xmloption'
       ]::pg_catalog.text[])
