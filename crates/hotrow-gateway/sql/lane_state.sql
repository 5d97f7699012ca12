-- The state of a lane's session as one text, without transactions' locks. Changes nothing. Runs on PostgreSQL 14 and later, as any
-- role. A lane asks for it at login, and compares it at the end of batches that call functions of which only a pack rule says
-- that they leave nothing. A setting that such a function makes until the end of the transaction counts, too: it would hold for
-- the statements of other clients in the batch.
--
-- $1: false for the role and the settings that decide what statements mean or may do, in some ten microseconds. True for all
-- settings that the session has made, which takes some 400 microseconds, because the server lists all of them.
select pg_catalog.concat_ws('/', session_user, pg_catalog.current_setting('role'),
       pg_catalog.pg_my_temp_schema(),
       exists (select from pg_catalog.pg_prepared_statements p where p.from_sql),
       exists (select from pg_catalog.pg_listening_channels()),
       exists (select from pg_catalog.pg_cursors c where c.is_holdable),
       case when $1::pg_catalog.bool then
           (select pg_catalog.md5(pg_catalog.string_agg(
                       pg_catalog.concat(s.name, '=', s.setting, ';'), '' order by s.name))
              from pg_catalog.pg_settings s
             where s.source operator(pg_catalog.=) 'session')
       else
           (select pg_catalog.string_agg(pg_catalog.current_setting(n.name, true), '/')
              from pg_catalog.unnest('{search_path,TimeZone,timezone_abbreviations,DateStyle,IntervalStyle,bytea_output,extra_float_digits,
                       client_encoding,standard_conforming_strings,backslash_quote,array_nulls,transform_null_equals,
                       quote_all_identifiers,xmloption,xmlbinary,lc_numeric,lc_monetary,lc_time,lc_messages,
                       default_text_search_config,gin_fuzzy_search_limit,row_security,check_function_bodies,default_tablespace,
                       default_table_access_method,default_toast_compression,temp_tablespaces,
                       transaction_isolation,transaction_read_only,transaction_deferrable,session_replication_role,
                       statement_timeout,lock_timeout,idle_in_transaction_session_timeout,synchronous_commit,
                       client_min_messages,lo_compat_privileges,plan_cache_mode,enable_seqscan,jit
                       }'::pg_catalog.text[]) n (name))
       end)
