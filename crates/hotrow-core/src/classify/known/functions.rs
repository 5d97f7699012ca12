//! Lists of PostgreSQL's own functions: which can be packed and which have effects on the session.
//! User-defined functions are judged elsewhere.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The behaviour of a function with respect to sharing a transaction or a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behaviour {
    /// It returns the same result in any transaction on any connection of one user to one database.
    Packable,
    /// It can be packed, and it changes the session's `currval`.
    MovesSequence,
    /// It sets a sequence, regardless of the order of transactions.
    SetsSequence,
    /// An aggregate or a set-returning function. It has no effects on the session but never occurs in a point
    /// statement.
    Plural,
    /// Its result depends on the transaction or the connection, it waits, or it reads settings. It has no
    /// effects on the session.
    Observing(&'static str),
    /// It reads state that `nextval` left in the session.
    ReadsSequence,
    /// It takes an advisory lock of the transaction if no other transaction has it. In a batch, it succeeds for each unit
    /// as it does for transactions that run one after another.
    TriesLock,
    /// It takes a session-level advisory lock.
    LocksSession,
    /// It releases all advisory locks of the session.
    UnlocksSession,
    ChangesSettings,
    /// Not known.
    Unknown,
}

/// The behaviour of a function of `pg_catalog`.
pub(crate) fn behaviour(name: &str) -> Behaviour {
    static BEHAVIOURS: LazyLock<HashMap<&str, Behaviour>> = LazyLock::new(|| {
        let named = |&(behaviour, names): &(Behaviour, &'static str)| {
            names.split_ascii_whitespace().map(move |name| (name, behaviour))
        };
        KNOWN.iter().flat_map(named).collect()
    });
    BEHAVIOURS.get(name).copied().unwrap_or(Behaviour::Unknown)
}

/// Whether a function of `pg_catalog` has a parameter that names an object, such as a sequence or a text search configuration. Of a
/// function that is not known, this is not known either.
pub(crate) fn takes_names(name: &str) -> bool {
    const NAMES: &str = "to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_headline \
                         array_to_tsvector json_to_tsvector jsonb_to_tsvector";
    behaviour(name) != Behaviour::Packable || NAMES.split_ascii_whitespace().any(|known| known == name)
}

/// Functions of well-known extensions that behave like PostgreSQL's own.
pub(crate) fn is_known_extension_function(extension: &str, name: &str) -> bool {
    const PGCRYPTO: &str = "armor crypt dearmor digest gen_random_bytes gen_random_uuid gen_salt hmac";
    match extension {
        "uuid-ossp" => name.starts_with("uuid_"),
        "pgcrypto" => PGCRYPTO.split(' ').any(|known| known == name),
        // The excluded functions change or return state of the connection.
        "pg_trgm" => !matches!(name, "set_limit" | "show_limit"),
        "isn" => name != "isn_weak",
        "btree_gin" | "btree_gist" | "citext" | "cube" | "earthdistance" | "fuzzystrmatch" | "hstore"
        | "intarray" | "ltree" | "unaccent" | "vector" => true,
        _ => false,
    }
}

/// Whether an object of an extension leaves no state on its connection that another session could notice. Its functions are
/// not all certain to be packable.
pub(crate) fn leaves_no_state(extension: &str, name: &str) -> bool {
    is_known_extension_function(extension, name)
        || matches!(extension, "lo" | "moddatetime" | "pg_stat_statements" | "postgis" | "seg" | "tcn")
}

/// The function that returns the elements of an array.
pub(crate) const UNNEST: &str = "unnest";
/// The function that counts rows.
pub(crate) const COUNT: &str = "count";

/// Functions with special syntax that the parser returns as plain names.
pub(crate) fn is_keyword_function(name: &str) -> bool {
    const NAMES: &str = "current_catalog current_date current_role current_schema current_time current_timestamp \
                         current_user localtime localtimestamp session_user system_user user";
    NAMES.split_ascii_whitespace().any(|known| known == name)
}

const KNOWN: &[(Behaviour, &str)] = &[
    (Behaviour::Packable, EVERYDAY),
    (Behaviour::Plural, SETS),
    (Behaviour::Observing("depends on the transaction"), TRANSACTIONS),
    (Behaviour::Observing("depends on the connection"), CONNECTIONS),
    (Behaviour::Observing("reads or changes the server's state"), CATALOG),
    (Behaviour::Observing("reads the session's settings"), "current_setting current_schemas"),
    (Behaviour::Observing("waits, which a lane must not do"), "pg_sleep pg_sleep_for pg_sleep_until"),
    (Behaviour::Observing("sends notifications"), "pg_notify"),
    (Behaviour::Observing("takes or releases an advisory lock"), ADVISORY),
    (Behaviour::TriesLock, "pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared"),
    (
        Behaviour::LocksSession,
        "pg_advisory_lock pg_advisory_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared",
    ),
    (Behaviour::UnlocksSession, "pg_advisory_unlock_all"),
    (Behaviour::MovesSequence, "nextval"),
    (Behaviour::SetsSequence, "setval"),
    (Behaviour::ReadsSequence, "currval lastval"),
    (Behaviour::ChangesSettings, "set_config setseed"),
];

/// Immutable functions, harmless stable ones, and volatile ones with results that are new on any connection.
const EVERYDAY: &str = "
    abs acos acosd acosh age array_append array_cat array_dims array_fill array_length array_lower array_ndims
    array_position array_positions array_prepend array_remove array_replace array_reverse array_sample
    array_shuffle array_sort array_to_json array_to_string array_to_tsvector array_upper ascii asin asind
    asinh atan atan2 atan2d atand atanh bit_count bit_length bool bpchar btrim cardinality casefold cbrt ceil
    ceiling char_length character_length chr clock_timestamp coalesce concat concat_ws convert convert_from
    convert_to cos cosd cosh cot cotd crc32 crc32c current_catalog current_database current_date current_role
    current_schema current_time current_timestamp current_user date date_add date_bin date_part date_subtract
    date_trunc daterange decode degrees div encode erf erfc exp extract factorial float4 float8 floor format
    gamma gcd gen_random_uuid get_bit get_byte greatest hashtext hashtextextended height host initcap int2
    int4 int4range int8 int8range interval isempty isfinite json_array json_array_length json_build_array
    json_build_object json_exists json_extract_path json_extract_path_text json_object json_query json_scalar
    json_serialize json_strip_nulls json_typeof json_value jsonb_array_length jsonb_build_array
    jsonb_build_object jsonb_concat jsonb_contains jsonb_delete jsonb_exists jsonb_exists_all jsonb_exists_any
    jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_path_exists jsonb_path_match
    jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls
    jsonb_typeof justify_days justify_hours justify_interval lcm least left length lgamma like ln localtime
    localtimestamp log log10 lower lower_inc lower_inf lpad ltrim macaddr8_set7bit make_date make_interval
    make_time make_timestamp make_timestamptz masklen md5 min_scale mod netmask network normalize notlike now
    nullif num_nonnulls num_nulls numeric numnode numrange octet_length overlaps overlay parse_ident
    phraseto_tsquery pi plainto_tsquery point position power quote_ident quote_literal quote_nullable radians
    random random_normal range_merge regexp_count regexp_instr regexp_like regexp_match regexp_replace
    regexp_split_to_array regexp_substr repeat replace reverse right round row row_to_json rpad rtrim scale
    session_user set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 sign similar_to_escape sin
    sind sinh split_part sqrt starts_with statement_timestamp string_to_array strip strpos substr substring
    system_user tan tand tanh text time timeofday timestamp timestamptz timezone to_ascii to_bin to_char
    to_date to_hex to_json to_jsonb to_number to_oct to_timestamp to_tsquery to_tsvector transaction_timestamp
    translate trim trim_array trim_scale trunc ts_delete ts_filter ts_headline ts_rank ts_rank_cd
    tsquery_phrase tsrange tstzrange tsvector_to_array unicode_assigned unistr upper upper_inc upper_inf user
    uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 varchar version websearch_to_tsquery
    width_bucket
";

/// Aggregates, window functions and functions that return sets.
const SETS: &str = "
    any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp cume_dist
    dense_rank every first_value generate_series generate_subscripts grouping json_agg json_array_elements
    json_array_elements_text json_arrayagg json_each json_each_text json_object_agg json_object_keys
    json_objectagg json_populate_record json_populate_recordset json_table json_to_record json_to_recordset
    jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_agg
    jsonb_object_keys jsonb_path_query jsonb_populate_record jsonb_populate_recordset jsonb_to_record
    jsonb_to_recordset lag last_value lead max min mode nth_value ntile percent_rank percentile_cont
    percentile_disc range_agg range_intersect_agg rank regexp_matches regexp_split_to_table regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number rows stddev
    stddev_pop stddev_samp string_agg string_to_table sum ts_debug ts_token_type unnest var_pop var_samp
    variance xmlagg
";

const TRANSACTIONS: &str = "
    mxid_age pg_current_snapshot pg_current_xact_id pg_current_xact_id_if_assigned pg_export_snapshot
    pg_last_committed_xact pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin pg_visible_in_snapshot
    pg_xact_commit_timestamp pg_xact_commit_timestamp_origin pg_xact_status txid_current
    txid_current_if_assigned txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin
    txid_status txid_visible_in_snapshot
";

const CONNECTIONS: &str = "
    current_query inet_client_addr inet_client_port inet_server_addr inet_server_port pg_backend_pid
    pg_blocking_pids pg_conf_load_time pg_is_other_temp_schema pg_listening_channels pg_my_temp_schema
    pg_safe_snapshot_blocking_pids pg_trigger_depth
";

const ADVISORY: &str = "
    pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_xact_lock pg_advisory_xact_lock_shared
";

/// Functions with which drivers, object-relational mappers and monitoring query the catalog and the server.
const CATALOG: &str = "
    col_description format_type has_any_column_privilege has_column_privilege has_database_privilege
    has_function_privilege has_schema_privilege has_sequence_privilege has_table_privilege has_type_privilege
    obj_description pg_cancel_backend pg_char_to_encoding pg_client_encoding pg_collation_is_visible
    pg_column_compression pg_column_size pg_current_logfile pg_current_wal_insert_lsn pg_current_wal_lsn
    pg_database_size pg_describe_object pg_encoding_to_char pg_function_is_visible pg_get_constraintdef
    pg_get_expr pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result
    pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partkeydef pg_get_ruledef pg_get_serial_sequence
    pg_get_statisticsobjdef pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role
    pg_index_column_has_property pg_indexes_size pg_is_in_recovery pg_is_wal_replay_paused
    pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lock_status
    pg_opclass_is_visible pg_operator_is_visible pg_options_to_table pg_postmaster_start_time
    pg_relation_filenode pg_relation_size pg_sequence_parameters pg_show_all_settings pg_size_bytes
    pg_size_pretty pg_stat_file pg_stat_get_activity pg_stat_reset pg_statistics_obj_is_visible
    pg_table_is_visible pg_table_size pg_tablespace_location pg_tablespace_size pg_terminate_backend
    pg_timezone_abbrevs pg_timezone_names pg_total_relation_size pg_ts_config_is_visible pg_ts_dict_is_visible
    pg_type_is_visible pg_typeof pg_wal_lsn_diff row_security_active shobj_description to_regclass
    to_regnamespace to_regoper to_regproc to_regprocedure to_regrole to_regtype
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_is_on_two_lists() {
        let mut seen = HashMap::new();
        for (behaviour, names) in KNOWN {
            for name in names.split_ascii_whitespace() {
                assert_eq!(seen.insert(name, behaviour), None, "{name}");
            }
        }
    }

    #[test]
    fn keyword_functions_are_known() {
        for name in ["current_user", "user", "localtime", "current_timestamp", "system_user"] {
            assert!(is_keyword_function(name), "{name}");
            assert_eq!(behaviour(name), Behaviour::Packable, "{name}");
        }
    }
}
