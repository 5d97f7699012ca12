//! Converts `pgcat.toml`. Pure.

use std::collections::BTreeMap;

use hotrow_core::page;
use toml::{Table, Value};

use super::access;
use super::advice;
use super::output::{ACCESS_FILE, Converted, OwnDatabase, ServerOf, keyword};
use super::pgbouncer::pool;

/// Keys of `[general]` that are converted.
const GENERAL: [&str; 16] = [
    "host",
    "port",
    "enable_prometheus_exporter",
    "prometheus_exporter_port",
    "shutdown_timeout",
    "idle_timeout",
    "worker_threads",
    "tls_certificate",
    "tls_private_key",
    "admin_username",
    "admin_password",
    "server_tls",
    "auth_query",
    "auth_query_user",
    "auth_query_password",
    "idle_client_in_transaction_timeout",
];
/// Keys of a pool that are converted.
const POOL: [&str; 4] = ["users", "shards", "auth_query_user", "auth_query_password"];
/// Keys of a shard that are converted.
const SHARD: [&str; 2] = ["servers", "database"];
/// Keys of a pool's user that are converted.
const USER: [&str; 6] =
    ["username", "password", "pool_size", "statement_timeout", "server_username", "server_password"];

/// Converts the file.
pub fn convert(text: &str) -> Result<Converted, toml::de::Error> {
    let file: Table = toml::from_str(text)?;
    let empty = Table::new();
    let table = |name: &str| file.get(name).and_then(Value::as_table).unwrap_or(&empty);
    let mut converted = Converted::default();
    general(table("general"), &mut converted);
    for (name, value) in table("pools") {
        match value.as_table() {
            Some(one) => database(name, one, table("general"), &mut converted),
            None => converted.note(format!("pools.{name}"), "it is not a table"),
        }
    }
    converted.note_servers();
    for name in file.keys().filter(|name| !matches!(name.as_str(), "general" | "pools")) {
        converted.note(name.as_str(), advice::pgcat(name));
    }
    Ok(converted)
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key).and_then(Value::as_str)
}

fn number(table: &Table, key: &str) -> Option<i64> {
    table.get(key).and_then(Value::as_integer)
}

fn is_on(table: &Table, key: &str) -> bool {
    table.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn general(table: &Table, converted: &mut Converted) {
    let host = match text(table, "host").unwrap_or("0.0.0.0") {
        "localhost" => "127.0.0.1",
        host => host,
    };
    let with_port =
        |port: i64| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    converted.set("listen", with_port(number(table, "port").unwrap_or(5432)));
    if is_on(table, "enable_prometheus_exporter") {
        converted.set("metrics", with_port(number(table, "prometheus_exporter_port").unwrap_or(9930)));
    }
    for (key, name) in [("shutdown_timeout", "drain_timeout_ms"), ("idle_timeout", "held_idle_ms")] {
        if let Some(value) = number(table, key).filter(|value| *value > 0) {
            converted.set(name, value.min(86_400_000));
        }
    }
    if let Some(threads) = number(table, "worker_threads").filter(|threads| *threads > 0) {
        converted.set("workers", threads.min(256));
    }
    for (key, name) in [("tls_certificate", "tls_cert_file"), ("tls_private_key", "tls_key_file")] {
        if let Some(file) = text(table, key) {
            converted.set(name, file);
        }
    }
    if let Some(admin) = text(table, "admin_username") {
        converted.set("console_admins", admin);
        add_user(admin, text(table, "admin_password"), "general.admin_password", converted);
        admit(hotrow_gateway::console::DATABASE, admin, "general.admin_username", converted);
        converted
            .note("general.admin_username", "the console is the database hotrow, not pgcat or pgbouncer");
    }
    match text(table, "auth_query") {
        Some(query) if query.contains("$1") && !query.contains("'$1'") => converted.set("auth_query", query),
        Some(_) => converted.note("general.auth_query", "pgcat puts the user's name into the text '$1': write the query with the parameter $1, without quotes, into auth_query"),
        None => converted.set("auth_query", ""),
    }
    if let Some(timeout) = number(table, "idle_client_in_transaction_timeout").filter(|value| *value > 0) {
        let what = format!(
            "add idle_in_transaction_session_timeout = \"{timeout}ms\" to settings of [[pool]] tables"
        );
        converted.note("general.idle_client_in_transaction_timeout", what);
    }
    // The users are those of the file, with plain passwords. The proof by SCRAM needs no more.
    converted.note(
        "general",
        format!(
            "clients log in by scram-sha-256 instead of md5, with the same passwords. {ACCESS_FILE} admits each user to the pools that list it, over TCP as in pgcat"
        ),
    );
    advise("general", table, &GENERAL, converted);
}

/// Notes about the keys of a table that are not converted.
fn advise(place: &str, table: &Table, known: &[&str], converted: &mut Converted) {
    for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
        converted.note(format!("{place}.{key}"), advice::pgcat(key));
    }
}

/// In pgcat only the users of a pool reach it.
fn admit(database: &str, user: &str, place: &str, converted: &mut Converted) {
    match access::line(database, user) {
        Some(line) if converted.access.contains(&line) => {}
        Some(line) => converted.access.push(line),
        None => converted.note(
            place,
            format!(
                "an access file cannot have the names {database:?} and {user:?}: the user is not admitted"
            ),
        ),
    }
}

fn add_user(user: &str, password: Option<&str>, place: &str, converted: &mut Converted) {
    let Some(password) = password else {
        return converted
            .note(place, format!("{user:?} has no password: add the user to users_file, or set auth_query"));
    };
    let earlier = converted.users.entry(user.to_owned()).or_insert_with(|| password.to_owned());
    if earlier != password {
        let what = format!(
            "{user:?} has another password in another pool: a user of the gateway has one password for all databases, and the first one is used"
        );
        converted.note(place, what);
    }
}

/// The users of a pool, in the order of their numbers.
fn users(table: &Table) -> Vec<(String, &Table)> {
    let users = table.get("users").and_then(Value::as_table);
    let mut users: Vec<(&String, &Table)> =
        users.into_iter().flatten().filter_map(|(key, user)| Some((key, user.as_table()?))).collect();
    users.sort_by_key(|(key, _)| key.parse::<u64>().unwrap_or(u64::MAX));
    users.into_iter().map(|(key, user)| (key.clone(), user)).collect()
}

fn database(name: &str, table: &Table, general: &Table, converted: &mut Converted) {
    let place = format!("pools.{name}");
    if name == hotrow_gateway::console::DATABASE {
        return converted
            .note(place, "the database hotrow is the gateway's console: rename the pool and convert again");
    }
    let shards: Vec<&Value> =
        table.get("shards").and_then(Value::as_table).into_iter().flat_map(Table::values).collect();
    let [shard] = shards[..] else {
        let what = format!(
            "it has {} shards, and the gateway does not route statements to shards: it is not converted. Give each shard a [[database]] table of its own, or read {}",
            shards.len(),
            page!("citus.md")
        );
        return converted.note(place, what);
    };
    let users = users(table);
    let Some(server) = server(&place, shard, (table, general, &users), converted) else { return };
    let there = shard.get("database").and_then(Value::as_str).unwrap_or(name);
    let mut row = Table::new();
    row.insert("name".to_owned(), Value::from(name));
    row.insert("server".to_owned(), Value::from(server));
    if there != name {
        row.insert("database".to_owned(), Value::from(there));
    }
    let mapped: Vec<Option<(&str, Option<&str>)>> = users
        .iter()
        .map(|(_, user)| Some((text(user, "server_username")?, text(user, "server_password"))))
        .collect();
    match mapped.first().copied().flatten() {
        Some((user, password)) if mapped.iter().all(|other| *other == Some((user, password))) => {
            row.insert("user".to_owned(), Value::from(user));
            if let Some(password) = password {
                row.insert("password".to_owned(), Value::from(password));
            }
        }
        _ if mapped.iter().any(Option::is_some) => converted.note(
            format!("{place}.users"),
            "its users have different users at the server: a [[database]] table has one user for all clients. Give each of them a [[database]] table, or let clients log in as the users of the server",
        ),
        _ => {}
    }
    let is_forced = row.contains_key("user");
    converted.database(row);
    for (index, user) in &users {
        pool_of_user(name, (index.as_str(), *user), is_forced, converted);
    }
    advise(&place, table, &POOL, converted);
    for (index, shard) in table.get("shards").and_then(Value::as_table).into_iter().flatten() {
        if let Some(shard) = shard.as_table() {
            advise(&format!("{place}.shards.{index}"), shard, &SHARD, converted);
        }
    }
}

/// A user of a pool. If the pool's users are one user at the server, they have no bounds of their own.
fn pool_of_user(pool_name: &str, (index, user): (&str, &Table), is_forced: bool, converted: &mut Converted) {
    let here = format!("pools.{pool_name}.users.{index}");
    let Some(username) = text(user, "username") else {
        return converted.note(here, "it has no username");
    };
    add_user(username, text(user, "password"), &here, converted);
    admit(pool_name, username, &here, converted);
    let mut settings = BTreeMap::new();
    if let Some(timeout) = number(user, "statement_timeout").filter(|value| *value > 0) {
        settings.insert("statement_timeout", format!("{timeout}ms"));
    }
    let held = number(user, "pool_size").filter(|size| *size > 0).map(|size| size.min(100_000));
    if is_forced {
        for key in ["pool_size", "statement_timeout"].into_iter().filter(|key| user.contains_key(*key)) {
            converted.note(
                format!("{here}.{key}"),
                "its users share the connections of one user: write a [[pool]] table for the database",
            );
        }
    } else {
        converted.pool(pool(Some(pool_name), Some(username), held, None, &settings));
    }
    advise(&here, user, &USER, converted);
}

/// The name of the `[[server]]` table of a shard.
fn server(
    place: &str,
    shard: &Value,
    (table, general, users): (&Table, &Table, &[(String, &Table)]),
    converted: &mut Converted,
) -> Option<String> {
    let (mut primaries, mut standbys) = (Vec::new(), Vec::new());
    for server in shard.get("servers").and_then(Value::as_array).into_iter().flatten() {
        let (host, port, role) = match server {
            Value::Array(parts) => (parts.first(), parts.get(1), parts.get(2)),
            other => (other.get("host"), other.get("port"), other.get("role")),
        };
        let host = host.and_then(Value::as_str)?.to_owned();
        let address = (host, port.and_then(Value::as_integer).unwrap_or(5432));
        match role.and_then(Value::as_str) {
            Some("replica") => standbys.push(address),
            _ => primaries.push(address),
        }
    }
    if primaries.is_empty() {
        converted.note(place, "it has no primary: it is not converted, because the gateway writes");
        return None;
    }
    if !standbys.is_empty() {
        converted.note(
            format!("{place}.shards"),
            concat!("replicas become hosts for a failover; for reads, add replicas = to the [[server]] table and let sessions set hotrow.reads = replica (", page!("replicas.md"), ")"),
        );
    }
    let failover = !standbys.is_empty() || primaries.len() > 1;
    let hosts: Vec<(String, i64)> = primaries.into_iter().chain(standbys).collect();
    let names: Vec<&str> = hosts.iter().map(|(host, _)| host.as_str()).collect();
    let ports: Vec<String> = hosts.iter().map(|(_, port)| port.to_string()).collect();
    let mut words = vec![keyword("host", &names.join(",")), keyword("port", &ports.join(","))];
    if failover {
        words.push("target_session_attrs=read-write".to_owned());
    }
    let get = |key: &str| text(table, key).or_else(|| text(general, key));
    let first = users.first().map(|(_, user)| *user);
    let of_first =
        |keys: [&str; 2]| first.and_then(|user| text(user, keys[0]).or_else(|| text(user, keys[1])));
    let (user, password) = match get("auth_query_user") {
        Some(user) => (Some(user), get("auth_query_password")),
        None => (of_first(["server_username", "username"]), of_first(["server_password", "password"])),
    };
    for (name, value) in [("user", user), ("password", password)] {
        words.extend(value.map(|value| keyword(name, value)));
    }
    words.push(if is_on(general, "server_tls") { "sslmode=require" } else { "sslmode=disable" }.to_owned());
    let address = format!("{}:{}", names.join(","), ports.join(","));
    let database = shard.get("database").and_then(Value::as_str).map(str::to_owned);
    let database = database.map_or(OwnDatabase::Unknown, OwnDatabase::OfClients);
    Some(converted.server(names[0], ServerOf { address, url: words.join(" "), database }))
}
