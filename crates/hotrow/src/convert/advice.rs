//! What to do about settings of other poolers that have no counterpart here. Pure.

/// The gateway does this without a setting.
const BUILT_IN: &str = "not needed:";
/// There is nothing like it.
const NONE: &str = "no counterpart:";

/// Keys of `[pgbouncer]` that are converted.
pub const CONVERTED: [&str; 30] = [
    "listen_addr",
    "listen_port",
    "unix_socket_dir",
    "max_client_conn",
    "max_packet_size",
    "query_wait_timeout",
    "server_idle_timeout",
    "client_tls_sslmode",
    "client_tls_cert_file",
    "client_tls_key_file",
    "client_tls_ca_file",
    "admin_users",
    "stats_users",
    "verbose",
    "auth_file",
    "auth_user",
    "auth_query",
    "auth_type",
    "auth_hba_file",
    "auth_dbname",
    "query_timeout",
    "idle_transaction_timeout",
    "server_tls_sslmode",
    "server_tls_ca_file",
    "server_tls_cert_file",
    "server_tls_key_file",
    "max_db_connections",
    "max_db_client_connections",
    "conffile",
    "pool_mode",
];

/// Keys of `[pgbouncer]` that are not converted.
const PGBOUNCER: &str = include_str!("advice/pgbouncer.txt");
/// Keys of pgcat.
const PGCAT: &str = include_str!("advice/pgcat.txt");

/// The advice about a key in a table.
fn find(table: &str, key: &str) -> Option<String> {
    let mut rows = table.lines().filter_map(|line| line.split_once(": "));
    let (_, advice) = rows.find(|(keys, _)| keys.split(' ').any(|other| other == key))?;
    Some(advice.to_owned())
}

/// The advice about a key of `[pgbouncer]`. None if it is converted without a difference.
pub fn pgbouncer(key: &str, value: &str) -> Option<String> {
    if let Some(advice) = find(PGBOUNCER, key) {
        return Some(advice);
    }
    match key {
        "pool_mode" => Some(match value {
            "session" => format!("{BUILT_IN} sessions keep their state, and hold a connection only while they need one"),
            "statement" => format!("{NONE} transactions of several statements are allowed"),
            _ => format!("{BUILT_IN} connections are shared between transactions, and sessions keep their state"),
        }),
        "conffile" => Some(format!("{BUILT_IN} SIGHUP and RELOAD read the file of --config again")),
        "server_tls_sslmode" if value == "allow" => Some("allow becomes prefer: TLS is tried first".to_owned()),
        "server_tls_sslmode" if value == "verify-ca" => {
            Some("verify-ca needs sslrootcert, from server_tls_ca_file".to_owned())
        }
        "listen_addr" if value.contains('*') => {
            Some("* becomes 0.0.0.0; for IPv6 add [::] with the port to listen".to_owned())
        }
        "query_timeout" | "idle_transaction_timeout" => Some(
            "it becomes a setting of the server in [[pool]] tables; the server cancels the statement or ends the session".to_owned(),
        ),
        "admin_users" | "stats_users" => {
            Some("the console is the database hotrow, not pgbouncer; its tables have PgBouncer's columns".to_owned())
        }
        key if CONVERTED.contains(&key) => None,
        _ => Some("PgBouncer 1.25 has no such setting".to_owned()),
    }
}

/// The advice about a key of a database's connection string.
pub fn pgbouncer_database(key: &str, value: &str) -> Option<String> {
    Some(match key {
        "dbname" | "port" | "user" | "password" | "auth_user" | "auth_dbname" | "max_db_connections"
        | "max_db_client_connections" | "client_encoding" | "datestyle" | "timezone" | "query_wait_timeout" => return None,
        "host" if value.starts_with('@') => format!("{NONE} abstract sockets are not supported: use a folder or an address"),
        "host" if value.contains(',') => "the hosts are tried in their order, and connections stay at the first that serves; they must be one primary and its standbys".to_owned(),
        "host" => return None,
        "pool_size" => "held_connections_max of a [[pool]] table bounds all users of the database together; it is written if the database has a user".to_owned(),
        "auth_query" => format!("{NONE} auth_query is one setting for all databases"),
        "connect_query" => format!("{NONE} use ALTER ROLE or ALTER DATABASE ... SET, or settings of a [[pool]] table"),
        "target_session_attrs" if matches!(value, "any" | "read-write" | "primary") => return None,
        "target_session_attrs" => format!("{NONE} the gateway does not check that the server is a standby"),
        "load_balance_hosts" if value == "disable" => return None,
        "load_balance_hosts" => format!("{NONE} hosts are tried in their order"),
        "min_pool_size" | "reserve_pool_size" | "reserve_pool" | "pool_mode" | "server_lifetime" => {
            let key = if key == "reserve_pool" { "reserve_pool_size" } else { key };
            return pgbouncer(key, value);
        }
        "application_name" => format!("{NONE} connections have the name of the client that uses them"),
        _ => "PgBouncer 1.25 has no such key here".to_owned(),
    })
}

/// The advice about a key of a user.
pub fn pgbouncer_user(key: &str) -> Option<String> {
    match key {
        "pool_size" => {
            Some(format!("{NONE} set max_user_connections, or held_connections_max of its [[pool]] table"))
        }
        "pool_mode" | "reserve_pool_size" | "transaction_timeout" | "client_idle_timeout" => {
            pgbouncer(key, "")
        }
        _ => Some("PgBouncer 1.25 has no such key here".to_owned()),
    }
}

/// The advice about a key of pgcat.
pub fn pgcat(key: &str) -> String {
    find(PGCAT, key).unwrap_or_else(|| "it is not known, and was not converted".to_owned())
}
