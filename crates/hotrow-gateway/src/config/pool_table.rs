//! `[[pool]]` tables of the settings file: settings for a database, a user, or a user in a database.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hotrow_core::pack_mode::PackMode;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{Config, TableList};

/// One table. Only the first matching table is in force for a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolTable {
    /// The database that it is for; none means all.
    pub database: Option<String>,
    /// The user that it is for; none means all.
    pub user: Option<String>,
    /// Whether units are packed.
    pub pack: Option<PackMode>,
    /// Tables whose statements are passed through all the same.
    pub unpacked_tables: Option<String>,
    /// Number of lanes for writes, and of lanes for reads.
    pub lanes: Option<Bounded<1, 64>>,
    /// Largest number of clients at once, over all pools of the table.
    pub clients_max: Option<Bounded<1, 1_000_000>>,
    /// Largest number of upstream connections that these clients' sessions hold at once.
    pub held_connections_max: Option<Bounded<1, 100_000>>,
    /// Longest wait of a session for a connection.
    pub held_wait_ms: Option<Milliseconds>,
    /// Longest wait of a statement in a lane for an outsider's lock.
    pub lane_lock_timeout_ms: Option<Milliseconds>,
    /// Longest wait for the server of units that were not sent.
    pub server_wait_ms: Option<Milliseconds>,
    /// Longest estimated wait in a lane.
    pub queue_wait_ms: Option<Milliseconds>,
    /// How long facts of the catalog stay valid.
    pub catalog_age_ms: Option<Milliseconds>,
    /// Settings of the server for these clients. Settings in a client's startup packet take precedence.
    pub settings: BTreeMap<String, SettingValue>,
}

/// A number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const LEAST: u64, const MOST: u64>(u64);

/// At most a day.
pub type Milliseconds = Bounded<1, 86_400_000>;

impl<const LEAST: u64, const MOST: u64> Bounded<LEAST, MOST> {
    /// The number.
    pub fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Bounded<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        match u64::try_from(number) {
            Ok(number) if (LEAST..=MOST).contains(&number) => Ok(Bounded(number)),
            _ => Err(D::Error::custom(format!("{number} must be {LEAST} to {MOST}"))),
        }
    }
}

/// The value of a setting of the server, written as a string, an integer or a Boolean.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a setting's value is a text, a whole number, true or false")]
pub enum SettingValue {
    Text(String),
    /// In the setting's own unit.
    Number(i64),
    /// On or off.
    Truth(bool),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Text(text) => f.write_str(text),
            SettingValue::Number(number) => number.fmt(f),
            SettingValue::Truth(truth) => truth.fmt(f),
        }
    }
}

impl PoolTable {
    pub fn fits(&self, database: &str, user: &str) -> bool {
        self.database.as_deref().is_none_or(|wanted| wanted == database)
            && self.user.as_deref().is_none_or(|wanted| wanted == user)
    }

    /// Whether it is for the same clients as another.
    pub fn is_for_same(&self, other: &PoolTable) -> bool {
        (&self.database, &self.user) == (&other.database, &other.user)
    }

    /// The clients that it is for, as text for people.
    pub fn describe(&self) -> String {
        match (&self.database, &self.user) {
            (Some(database), Some(user)) => format!("user {user} in database {database}"),
            (Some(database), None) => format!("database {database}"),
            (None, Some(user)) => format!("user {user}"),
            (None, None) => "everyone".to_owned(),
        }
    }

    /// Puts its settings before the client's own options, so the client's options take precedence.
    pub fn put_settings(&self, parameters: &mut Vec<(String, String)>) {
        if self.settings.is_empty() {
            return;
        }
        let settings =
            self.settings.iter().map(|(name, value)| format!("-c {}", escaped(&format!("{name}={value}"))));
        let mut options = settings.collect::<Vec<_>>().join(" ");
        match parameters.iter_mut().find(|(name, _)| name == "options") {
            Some((_, own)) => {
                options.push(' ');
                options.push_str(own);
                *own = options;
            }
            None => parameters.push(("options".to_owned(), options)),
        }
    }

    /// Applies the table to the configuration.
    pub fn apply(&self, config: &mut Config) {
        config.pack = self.pack.unwrap_or(config.pack);
        if let Some(tables) = &self.unpacked_tables {
            config.unpacked_tables = TableList::read(tables);
        }
        config.lanes = self.lanes.map_or(config.lanes, Bounded::get);
        for (value, target) in [
            (self.held_wait_ms, &mut config.held_wait),
            (self.lane_lock_timeout_ms, &mut config.lane_lock_timeout),
            (self.server_wait_ms, &mut config.server_wait),
            (self.queue_wait_ms, &mut config.queue_wait),
            (self.catalog_age_ms, &mut config.catalog_age),
        ] {
            *target = value.map_or(*target, Bounded::duration);
        }
    }
}

/// Escapes one word of `options` as the server reads it.
fn escaped(word: &str) -> String {
    word.chars()
        .flat_map(|c| (c == '\\' || c.is_whitespace()).then_some('\\').into_iter().chain([c]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<PoolTable, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_fits_the_clients_that_it_names() {
        let shop = table(r#"{"database": "shop"}"#).unwrap();
        assert!(shop.fits("shop", "ann") && !shop.fits("bank", "ann"));
        let ann = table(r#"{"database": "shop", "user": "ann"}"#).unwrap();
        assert!(ann.fits("shop", "ann") && !ann.fits("shop", "bob"));
        assert!(table("{}").unwrap().fits("any", "body"));
    }

    #[test]
    fn options_of_the_client_follow_those_of_the_table() {
        let table =
            table(r#"{"settings": {"statement_timeout": 5, "search_path": "a, b", "jit": false}}"#).unwrap();
        let mut parameters = vec![("user".to_owned(), "ann".to_owned())];
        table.put_settings(&mut parameters);
        let ours = r"-c jit=false -c search_path=a,\ b -c statement_timeout=5";
        assert_eq!(parameters[1], ("options".to_owned(), ours.to_owned()));
        let mut parameters = vec![("options".to_owned(), "-c jit=on".to_owned())];
        table.put_settings(&mut parameters);
        assert_eq!(parameters[0].1, format!("{ours} -c jit=on"));
    }

    #[test]
    fn invalid_tables_are_rejected_with_a_reason() {
        assert!(table(r#"{"lanes": 0}"#).unwrap_err().contains("0 must be 1 to 64"));
        assert!(table(r#"{"queue_wait_ms": -1}"#).unwrap_err().contains("-1 must be 1 to 86400000"));
        assert!(table(r#"{"lane": 1}"#).unwrap_err().contains("unknown field `lane`"));
        assert!(table(r#"{"settings": {"a": []}}"#).unwrap_err().contains("a text, a whole number"));
    }
}
