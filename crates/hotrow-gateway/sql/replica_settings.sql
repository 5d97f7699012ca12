-- The version of the server, and the settings that decide what a read means and how its answer looks. A read can run on a
-- replica only if they are equal there. A lane has timeouts of its own. The last column is when the server was started, in
-- microseconds since 1970: if an address leads to several servers, it shows which one this is.
select pg_catalog.current_setting('server_version_num'),
       pg_catalog.string_agg(s.name operator(pg_catalog.||) '=' operator(pg_catalog.||) s.setting, ' ' order by s.name),
       (extract(epoch from pg_catalog.pg_postmaster_start_time()) operator(pg_catalog.*) 1000000)::pg_catalog.int8
  from pg_catalog.pg_settings s
 where s.name operator(pg_catalog.=) any (array[
           'array_nulls', 'backslash_quote', 'bytea_output', 'client_encoding', 'DateStyle', 'default_text_search_config',
           'default_transaction_deferrable', 'default_transaction_isolation', 'escape_string_warning', 'extra_float_digits',
           'IntervalStyle', 'lc_collate', 'lc_ctype', 'lc_messages', 'lc_monetary', 'lc_numeric', 'lc_time',
           'operator_precedence_warning', 'quote_all_identifiers', 'role', 'row_security', 'search_path', 'server_encoding',
           'session_replication_role', 'standard_conforming_strings', 'TimeZone', 'timezone_abbreviations',
           'transform_null_equals', 'xmlbinary', 'xmloption'
       ]::pg_catalog.text[])
