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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    name: String,
    url: String,
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

    /// The name of the server with this keyword string. Equal servers get one table.
    pub fn server(&mut self, host: &str, url: &str) -> String {
        if let Some(server) = self.servers.iter().find(|server| server.url == url) {
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
        self.servers.push(Server { name: name.clone(), url: url.to_owned() });
        name
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
            let _ = writeln!(
                text,
                "\n[[server]]\nname = {}\nurl = {}",
                Value::from(&*server.name),
                Value::from(&*server.url)
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

    /// The users file.
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
        assert_eq!(converted.server("/run/postgresql", "a"), "run-postgresql");
        assert_eq!(converted.server("db", "b"), "db");
        assert_eq!(converted.server("db", "c"), "db-2");
        assert_eq!(converted.server("db", "b"), "db");
        assert_eq!(converted.server("", "d"), "server");
    }
}
