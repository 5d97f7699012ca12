//! Converts `pgbouncer.ini`. Pure: the caller reads the files.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::access::{self, Tls};
use super::advice;
use super::ini::{self, Entry};
use super::output::{Converted, OwnDatabase, ServerOf, count, keyword, milliseconds};

/// The keys of `[pgbouncer]` with their lines.
type Global = BTreeMap<String, (usize, String)>;

/// Settings of the server, for `[[pool]]` tables.
type ServerSettings = BTreeMap<&'static str, String>;

/// Keys of the connection to a server that a `[[server]]` table is made of.
const TLS_KEYS: [(&str, &str); 3] = [
    ("server_tls_ca_file", "sslrootcert"),
    ("server_tls_cert_file", "sslcert"),
    ("server_tls_key_file", "sslkey"),
];

/// Converts the file. `password_of` knows the passwords in PgBouncer's `auth_file`.
pub fn convert(text: &str, password_of: &dyn Fn(&str) -> Option<String>) -> Result<Converted, ini::Error> {
    let entries = ini::read(text)?;
    let mut file = File { global: Global::new(), converted: Converted::default(), password_of };
    for entry in entries.iter().filter(|entry| entry.section == "pgbouncer") {
        file.global.insert(entry.key.to_ascii_lowercase(), (entry.line, entry.value.clone()));
    }
    file.listen();
    file.limits();
    file.logins();
    file.advise();
    let of = |wanted: &'static str| entries.iter().filter(move |entry| entry.section == wanted);
    for entry in of("databases") {
        file.database(entry)?;
    }
    file.note_auth_query();
    file.converted.note_servers();
    for entry in of("users") {
        file.user(entry)?;
    }
    for entry in of("peers") {
        let what = "cancel requests are not forwarded between gateways: let the load balancer keep a client's address at one gateway";
        file.converted.note(place(entry), what);
    }
    for entry in of(ini::INCLUDES) {
        let what = format!("{} is not read: put its lines here and convert again", entry.value);
        file.converted.note(place(entry), what);
    }
    let known = ["pgbouncer", "databases", "users", "peers", ini::INCLUDES];
    for entry in entries.iter().filter(|entry| !known.contains(&&*entry.section)) {
        file.converted.note(place(entry), format!("PgBouncer has no section [{}]", entry.section));
    }
    let rest = file.server_settings();
    file.converted.pool(pool(None, None, None, None, &rest));
    Ok(file.converted)
}

struct File<'a> {
    global: Global,
    converted: Converted,
    password_of: &'a dyn Fn(&str) -> Option<String>,
}

fn place(entry: &Entry) -> String {
    match entry.key.as_str() {
        "" => format!("line {}", entry.line),
        key => format!("line {}: {key}", entry.line),
    }
}

impl File<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.global.get(key).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn note(&mut self, key: &str, text: impl Into<String>) {
        let line = self.global.get(key).map(|(line, _)| format!("line {line}: "));
        self.converted.note(format!("{}{key}", line.unwrap_or_default()), text);
    }

    fn listen(&mut self) {
        let port = self.get("listen_port").unwrap_or("6432").to_owned();
        let mut listen = Vec::new();
        let addresses = self.get("listen_addr").unwrap_or_default().to_owned();
        for address in addresses.split(',').map(str::trim) {
            match address {
                "" => {}
                "*" => listen.push(format!("0.0.0.0:{port}")),
                "localhost" => listen.push(format!("127.0.0.1:{port}")),
                address => match address.parse() {
                    Ok(std::net::IpAddr::V4(address)) => listen.push(format!("{address}:{port}")),
                    Ok(std::net::IpAddr::V6(address)) => listen.push(format!("[{address}]:{port}")),
                    Err(_) => self.note(
                        "listen_addr",
                        format!("{address} is a host name: write its IP address into listen"),
                    ),
                },
            }
        }
        match self.get("unix_socket_dir").map(str::to_owned) {
            Some(directory) if directory.starts_with('/') => {
                listen.push(format!("{}/.s.PGSQL.{port}", directory.trim_end_matches('/')));
            }
            Some(_) => self.note("unix_socket_dir", "abstract sockets are not supported: use a folder"),
            None if self.global.contains_key("unix_socket_dir") => {}
            None => self.note(
                "unix_socket_dir",
                format!("PgBouncer's default is a socket in /tmp: if clients use it, add /tmp/.s.PGSQL.{port} to listen"),
            ),
        }
        if listen.is_empty() {
            listen.push(format!("127.0.0.1:{port}"));
        }
        self.converted.set("listen", listen.join(","));
    }

    fn limits(&mut self) {
        for (key, name, most) in
            [("max_client_conn", "clients_max", 1_000_000), ("max_packet_size", "message_bytes_max", 1 << 30)]
        {
            let Some(text) = self.get(key).map(str::to_owned) else { continue };
            match count(&text, most) {
                Some(value) if key == "max_packet_size" && value < 65_536 => {
                    self.converted.set(name, 65_536);
                    self.note(key, "the smallest bound is 65536 bytes");
                }
                Some(value) => self.converted.set(name, value),
                None => {
                    self.note(key, format!("{text:?} is not a number of 1 or more: {name} has its default"))
                }
            }
        }
        for (key, name) in [("query_wait_timeout", "held_wait_ms"), ("server_idle_timeout", "held_idle_ms")] {
            let Some(text) = self.get(key).map(str::to_owned) else { continue };
            match milliseconds(&text) {
                Some(value) => self.converted.set(name, value),
                None => {
                    self.note(key, format!("{text:?} is not a number of seconds: {name} has its default"))
                }
            }
        }
        for (key, name) in [
            ("client_tls_cert_file", "tls_cert_file"),
            ("client_tls_key_file", "tls_key_file"),
            ("client_tls_ca_file", "tls_client_ca_file"),
            ("admin_users", "console_admins"),
            ("stats_users", "console_readers"),
        ] {
            let is_unused = key.starts_with("client_tls") && self.client_tls() == Tls::Off;
            if let Some(value) = self.get(key).map(str::to_owned) {
                if is_unused {
                    self.note(key, "PgBouncer does not use it, because client_tls_sslmode is disable");
                } else {
                    self.converted.set(name, value);
                }
            }
        }
        if self.get("verbose").is_some_and(|verbose| verbose.trim() != "0") {
            self.converted.set("log", "debug");
        }
    }

    fn client_tls(&self) -> Tls {
        match self.get("client_tls_sslmode").unwrap_or("disable") {
            "disable" => Tls::Off,
            "allow" | "prefer" => Tls::Offered,
            "require" => Tls::Required,
            _ => Tls::Verified,
        }
    }

    fn logins(&mut self) {
        if let Some(file) = self.get("auth_file").map(str::to_owned) {
            self.converted.set("users_file", file);
        }
        // PgBouncer asks a server for secrets only as auth_user.
        match (self.get("auth_user").is_some(), self.get("auth_query").map(str::to_owned)) {
            (true, Some(query)) => self.converted.set("auth_query", query),
            (true, None) => {}
            (false, _) => self.converted.set("auth_query", ""),
        }
        let method = self.get("auth_type").unwrap_or("md5").to_ascii_lowercase();
        if method == "hba" {
            match self.get("auth_hba_file").map(str::to_owned) {
                Some(file) => {
                    self.converted.set("hba_file", file);
                    let what = "the file is used as it is; the gateway refuses lines with peer, ldap, host names, @file or +group, and its message names the line. The console is the database hotrow there, which all does not include";
                    self.note("auth_hba_file", what);
                }
                None => {
                    self.note("auth_type", "hba without auth_hba_file: name an access file with hba_file")
                }
            }
            return;
        }
        let (lines, what) = access::lines(&method, self.client_tls());
        self.converted.access = lines;
        if let Some(what) = what {
            self.note("auth_type", what);
        }
    }

    /// PgBouncer asks in the client's own database, and the gateway in one database of each server.
    fn note_auth_query(&mut self) {
        let chosen = self.converted.chosen_databases().join(", ");
        if self.get("auth_user").is_none() || self.get("auth_query").is_none() || chosen.is_empty() {
            return;
        }
        let what = format!(
            "PgBouncer runs it in each client's own database, and the gateway in one database of each [[server]]: {chosen}. If the query needs a function, it has to exist there: otherwise clients without an entry in auth_file are refused. Another database can be named with dbname= in the url"
        );
        self.note("auth_query", what);
    }

    /// Notes about keys without a counterpart.
    fn advise(&mut self) {
        for (key, (line, value)) in self.global.clone() {
            if let Some(text) = advice::pgbouncer(&key, &value) {
                self.converted.note(format!("line {line}: {key}"), text);
            }
        }
    }

    /// Timeouts that the server can enforce.
    fn server_settings(&mut self) -> ServerSettings {
        let mut settings = ServerSettings::new();
        for (key, name) in [
            ("query_timeout", "statement_timeout"),
            ("idle_transaction_timeout", "idle_in_transaction_session_timeout"),
        ] {
            let value = self.get(key).filter(|value| value.trim().parse::<f64>() != Ok(0.0));
            if let Some(value) = value.and_then(milliseconds) {
                settings.insert(name, format!("{value}ms"));
            }
        }
        settings
    }

    fn database(&mut self, entry: &Entry) -> Result<(), ini::Error> {
        let pairs = ini::pairs(&entry.value).map_err(|cause| ini::Error { line: entry.line, cause })?;
        let get = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        if entry.key == hotrow_gateway::console::DATABASE {
            self.converted.note(
                place(entry),
                "the database hotrow is the gateway's console: rename it and convert again",
            );
            return Ok(());
        }
        for (key, value) in &pairs {
            if let Some(text) = advice::pgbouncer_database(key, value) {
                self.converted.note(format!("{}: {key}", place(entry)), text);
            }
        }
        let mut table = Table::new();
        table.insert("name".to_owned(), Value::from(&*entry.key));
        table.insert("server".to_owned(), Value::from(self.server(entry, &get)));
        for (key, name) in [("dbname", "database"), ("user", "user"), ("password", "password")] {
            let value = get(key).filter(|value| key != "dbname" || *value != entry.key);
            if let Some(value) = value.filter(|_| key != "password" || get("user").is_some()) {
                table.insert(name.to_owned(), Value::from(value));
            }
        }
        self.converted.database(table);
        let sizes = [get("max_db_connections"), get("pool_size").filter(|_| get("user").is_some())];
        let held = sizes.into_iter().flatten().filter_map(|text| count(&text, 100_000)).min();
        let held = held.or_else(|| count(self.get("max_db_connections")?, 100_000));
        let clients = get("max_db_client_connections").and_then(|text| count(&text, 1_000_000));
        let clients = clients.or_else(|| count(self.get("max_db_client_connections")?, 1_000_000));
        let mut settings = self.server_settings();
        for (key, name) in
            [("client_encoding", "client_encoding"), ("datestyle", "datestyle"), ("timezone", "timezone")]
        {
            if let Some(value) = get(key) {
                settings.insert(name, value);
            }
        }
        let name = Some(&*entry.key).filter(|name| *name != "*");
        let mut pool = pool(name, None, held, clients, &settings);
        if let Some(wait) = get("query_wait_timeout").and_then(|text| milliseconds(&text)) {
            pool.insert("held_wait_ms".to_owned(), Value::from(wait));
        }
        // A table for all databases would hide those of the users, and is the last one anyway.
        match name {
            Some(_) => self.converted.pool(pool),
            None if held.is_some() || clients.is_some() => {
                self.converted.note(
                    place(entry),
                    "its bounds are for each database: write a [[pool]] table for each one",
                );
            }
            None => {}
        }
        Ok(())
    }

    /// The name of the `[[server]]` table of a database.
    fn server(&mut self, entry: &Entry, get: &dyn Fn(&str) -> Option<String>) -> String {
        let host = get("host").or_else(|| self.get("unix_socket_dir").map(str::to_owned));
        let host = host.unwrap_or_else(|| "/tmp".to_owned());
        let mut words = vec![keyword("host", &host)];
        let port = get("port").unwrap_or_else(|| "5432".to_owned());
        words.push(keyword("port", &port));
        let own = get("auth_user").or_else(|| self.get("auth_user").map(str::to_owned));
        let own = own.map(|user| ((self.password_of)(&user), user));
        let forced = || Some((get("password").or_else(|| (self.password_of)(&get("user")?)), get("user")?));
        match own.or_else(forced) {
            Some((password, user)) => {
                words.push(keyword("user", &user));
                match password {
                    Some(password) => words.push(keyword("password", &password)),
                    None => self.converted.note(
                        place(entry),
                        format!("the gateway logs in as {user:?} for its own queries: if the server asks for a password, add password= to the url of the [[server]]"),
                    ),
                }
            }
            None => self.converted.note(
                place(entry),
                "PgBouncer has no user of its own (auth_user): add user= and password= to the url of the [[server]] for the maintenance of the hotrow schema, if you install it",
            ),
        }
        let named = get("auth_dbname").or_else(|| self.get("auth_dbname").map(str::to_owned));
        let of_clients = get("dbname").or_else(|| Some(entry.key.clone()).filter(|name| name != "*"));
        let database = match (named, of_clients) {
            (Some(name), _) => OwnDatabase::Named(name),
            (None, Some(name)) => OwnDatabase::OfClients(name),
            (None, None) => OwnDatabase::Unknown,
        };
        // Both mean a server that is not in recovery.
        if get("target_session_attrs").is_some_and(|wanted| matches!(&*wanted, "read-write" | "primary")) {
            words.push("target_session_attrs=read-write".to_owned());
        }
        match self.get("server_tls_sslmode").unwrap_or("prefer") {
            "allow" | "prefer" => {} // prefer is the default
            mode => words.push(keyword("sslmode", mode)),
        }
        for (key, name) in TLS_KEYS {
            if let Some(file) = self.get(key) {
                words.push(keyword(name, file));
            }
        }
        let address = format!("{host}:{port}");
        self.converted.server(&host, ServerOf { address, url: words.join(" "), database })
    }

    fn user(&mut self, entry: &Entry) -> Result<(), ini::Error> {
        let pairs = ini::pairs(&entry.value).map_err(|cause| ini::Error { line: entry.line, cause })?;
        let mut settings = self.server_settings();
        let (mut held, mut clients, mut wait) = (None, None, None);
        for (key, value) in &pairs {
            match key.as_str() {
                "max_user_connections" => held = count(value, 100_000),
                "max_user_client_connections" => clients = count(value, 1_000_000),
                "query_wait_timeout" => wait = milliseconds(value),
                "query_timeout" | "idle_transaction_timeout" => {
                    let name = if key == "query_timeout" {
                        "statement_timeout"
                    } else {
                        "idle_in_transaction_session_timeout"
                    };
                    if let Some(value) = milliseconds(value) {
                        settings.insert(name, format!("{value}ms"));
                    }
                }
                _ => {
                    if let Some(text) = advice::pgbouncer_user(key) {
                        self.converted.note(format!("{}: {key}", place(entry)), text);
                    }
                }
            }
        }
        let mut pool = pool(None, Some(&entry.key), held, clients, &settings);
        if let Some(wait) = wait {
            pool.insert("held_wait_ms".to_owned(), Value::from(wait));
        }
        self.converted.pool(pool);
        let what = "only the first [[pool]] table that fits a client applies, and the tables of databases come first";
        self.converted.note(place(entry), what);
        Ok(())
    }
}

/// A `[[pool]]` table.
pub fn pool(
    database: Option<&str>,
    user: Option<&str>,
    held: Option<i64>,
    clients: Option<i64>,
    settings: &ServerSettings,
) -> Table {
    let texts = [("database", database), ("user", user)];
    let numbers = [("held_connections_max", held), ("clients_max", clients)];
    let texts = texts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let numbers =
        numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let mut table: Table = texts.chain(numbers).collect();
    if !settings.is_empty() {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), Value::from(&**value)));
        table.insert("settings".to_owned(), Value::Table(settings.collect()));
    }
    table
}
