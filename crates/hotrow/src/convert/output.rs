//! Settings of this program as text: keys, `[[server]]`, `[[database]]` and `[[pool]]` tables, an access file, a users
//! file, and notes about all that is different. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use toml::Value;

/// The result of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Converted {
    settings: Vec<(String, Value)>,
    servers: Vec<Server>,
    databases: Vec<toml::Table>,
    pools: Vec<toml::Table>,
    /// The lines of the access file; none if the settings name one that exists.
    pub access: Vec<String>,
    /// Users and their passwords for a users file; empty if the settings name one that exists.
    pub users: BTreeMap<String, String>,
    /// What is different, and what to do instead.
    pub notes: Vec<Note>,
}

/// What a line of the file has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its place: a line, or a table and its key.
    pub place: String,
    /// What to do.
    pub text: String,
}

/// The server of a database, as another pooler describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOf {
    /// The hosts and their ports.
    pub address: String,
    /// The keyword string of its URL, without a database.
    pub url: String,
    /// The database of the gateway's own commands there.
    pub database: OwnDatabase,
}

/// The database of the gateway's own commands at a server. A later variant replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnDatabase {
    /// The file names none.
    Unknown,
    OfClients(String),
    /// The one that the file names for this purpose.
    Named(String),
}

impl OwnDatabase {
    fn name(&self) -> &str {
        match self {
            OwnDatabase::Unknown => "postgres",
            OwnDatabase::OfClients(name) | OwnDatabase::Named(name) => name,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            OwnDatabase::Unknown => 0,
            OwnDatabase::OfClients(_) => 1,
            OwnDatabase::Named(_) => 2,
        }
    }

    /// Whether one connection of the gateway can serve both.
    fn agrees(&self, other: &Self) -> bool {
        self == other || [self, other].iter().any(|one| one.rank() < 2)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    name: String,
    of: ServerOf,
}

/// The file's name of the access file that is written beside the settings.
pub const ACCESS_FILE: &str = "hotrow_hba.conf";
/// The file's name of the users file that is written beside the settings.
pub const USERS_FILE: &str = "hotrow_users.txt";
/// The longest time that a setting can have, in milliseconds.
const MS_MAX: f64 = 86_400_000.0;

impl Converted {
    /// Adds a setting, in place of an earlier one.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.settings.retain(|(other, _)| other != name);
        self.settings.push((name.to_owned(), value.into()));
    }

    /// Adds a note.
    pub fn note(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note { place: place.into(), text: text.into() });
    }

    /// The name of the `[[server]]` table of a server, named after its host. The databases of one server have one table, because
    /// `held_connections_max` bounds each table.
    pub fn server(&mut self, host: &str, of: ServerOf) -> String {
        let is_same =
            |server: &&mut Server| server.of.url == of.url && server.of.database.agrees(&of.database);
        if let Some(server) = self.servers.iter_mut().find(is_same) {
            if of.database.rank() > server.of.database.rank() {
                server.of.database = of.database;
            }
            return server.name.clone();
        }
        let letters = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = host.split(',').next().unwrap_or_default().chars().map(letters).take(40).collect();
        let name = match name.trim_matches('-') {
            "" => "server".to_owned(),
            name => name.to_owned(),
        };
        let taken = |name: &str| self.servers.iter().any(|server| server.name == name);
        let name = (1..)
            .map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") })
            .find(|name| !taken(name))
            .expect("the numbers do not end");
        self.servers.push(Server { name: name.clone(), of });
        name
    }

    /// Notes servers that have several tables.
    pub fn note_servers(&mut self) {
        let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for server in &self.servers {
            tables.entry(&server.of.address).or_default().push(&server.name);
        }
        let several = tables.into_iter().filter(|(_, names)| names.len() > 1);
        let texts: Vec<String> = several
            .map(|(address, names)| {
                format!(
                    "{address} has {} [[server]] tables ({}), because their users or options differ. held_connections_max bounds each of them: their sum must fit max_connections of the server",
                    names.len(),
                    names.join(", ")
                )
            })
            .collect();
        texts.into_iter().for_each(|text| self.note("[[server]]", text));
    }

    /// The databases in which `auth_query` runs although the file does not name them: `"shop" of [[server]] db`.
    pub fn chosen_databases(&self) -> Vec<String> {
        let chosen = self.servers.iter().filter(|server| server.of.database.rank() < 2);
        chosen
            .map(|server| format!("{:?} of [[server]] {}", server.of.database.name(), server.name))
            .collect()
    }

    /// Adds a `[[database]]` table.
    pub fn database(&mut self, table: toml::Table) {
        self.databases.push(table);
    }

    /// Adds a `[[pool]]` table, if it sets anything.
    pub fn pool(&mut self, table: toml::Table) {
        if table.keys().any(|key| key != "database" && key != "user") {
            self.pools.push(table);
        }
    }

    /// Whether clients can connect to a database.
    pub fn has_databases(&self) -> bool {
        !self.databases.is_empty()
    }

    /// The settings file.
    pub fn settings(&self, from: &str) -> String {
        let mut text = format!("# Written by hotrow convert from {from}. All settings: hotrow help config\n");
        for (name, value) in &self.settings {
            let _ = writeln!(text, "{name} = {value}"); // a String takes all text
        }
        for server in &self.servers {
            let url = format!("{} {}", server.of.url, keyword("dbname", server.of.database.name()));
            let _ = writeln!(
                text,
                "\n[[server]]\nname = {}\nurl = {}",
                Value::from(&*server.name),
                Value::from(url)
            );
        }
        for (kind, tables) in [("database", &self.databases), ("pool", &self.pools)] {
            for table in tables {
                let _ = writeln!(text, "\n[[{kind}]]");
                for (name, value) in table {
                    let _ = writeln!(text, "{name} = {value}");
                }
            }
        }
        text
    }

    pub fn users_file(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        self.users.iter().map(|(user, secret)| format!("{} {}\n", quoted(user), quoted(secret))).collect()
    }
}

/// `name=value` of a keyword string as libpq reads it.
pub fn keyword(name: &str, value: &str) -> String {
    let is_plain =
        !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,/:*".contains(c));
    match is_plain {
        true => format!("{name}={value}"),
        false => format!("{name}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
    }
}

/// Seconds as a number of milliseconds that a setting can have. 0 stands for no limit, as in PgBouncer.
pub fn milliseconds(seconds: &str) -> Option<i64> {
    let seconds: f64 =
        seconds.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)?;
    Some(if seconds == 0.0 { MS_MAX } else { (seconds * 1000.0).round().clamp(1.0, MS_MAX) } as i64)
}

/// A number of connections or clients that a setting can have. 0 stands for no limit.
pub fn count(text: &str, most: i64) -> Option<i64> {
    let count: i64 = text.trim().parse().ok().filter(|count| *count >= 1)?;
    Some(count.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_for_libpq() {
        assert_eq!(keyword("host", "10.0.0.1,db-2"), "host=10.0.0.1,db-2");
        assert_eq!(keyword("password", r"it's a\b"), r"password='it\'s a\\b'");
        assert_eq!(keyword("password", ""), "password=''");
    }

    #[test]
    fn durations_stay_within_the_bounds_of_the_settings() {
        assert_eq!(milliseconds("1.5"), Some(1500));
        assert_eq!(milliseconds("0"), Some(86_400_000));
        assert_eq!(milliseconds("100000000"), Some(86_400_000));
        assert_eq!((milliseconds("-1"), milliseconds("x"), milliseconds("inf")), (None, None, None));
        assert_eq!((count("0", 9), count("12", 9), count("3", 9)), (None, Some(9), Some(3)));
    }

    #[test]
    fn servers_get_names_of_their_own() {
        let mut converted = Converted::default();
        let mut server = |host: &str, url: &str, database| {
            converted.server(host, ServerOf { address: host.to_owned(), url: url.to_owned(), database })
        };
        use OwnDatabase::{Named, OfClients, Unknown};
        assert_eq!(server("/run/postgresql", "a", Unknown), "run-postgresql");
        assert_eq!(server("db", "b", Unknown), "db");
        assert_eq!(server("db", "c", Unknown), "db-2");
        assert_eq!(server("db", "b", OfClients("shop".to_owned())), "db");
        assert_eq!(server("db", "b", OfClients("other".to_owned())), "db");
        assert_eq!(server("db", "c", Named("x".to_owned())), "db-2");
        assert_eq!(server("db", "c", OfClients("shop".to_owned())), "db-2");
        assert_eq!(server("db", "c", Named("y".to_owned())), "db-3");
        assert_eq!(server("", "d", Unknown), "server");
        let text = converted.settings("test");
        for url in ["\"a dbname=postgres\"", "\"b dbname=shop\"", "\"c dbname=x\"", "\"c dbname=y\""] {
            assert!(text.contains(url), "{url}: {text}");
        }
        converted.note_servers();
        assert_eq!(converted.notes.len(), 1);
        assert!(converted.notes[0].text.starts_with("db has 3 [[server]] tables (db, db-2, db-3)"));
    }
}
