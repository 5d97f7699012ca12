//! `[[pool]]` tables of the settings file: what is different for a database, a user, or a user in a database.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::Config;

/// One table. The first one that fits a client is in force for it, and no other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolTable {
    /// The database it is for; all if there is none.
    pub database: Option<String>,
    /// The user it is for; all if there is none.
    pub user: Option<String>,
    /// Whether anything is packed.
    pub pack: Option<bool>,
    /// Lanes for writes, and as many again for reads.
    pub lanes: Option<Bounded<1, 64>>,
    /// Clients at once, all together that the table is in force for.
    pub clients_max: Option<Bounded<1, 1_000_000>>,
    /// Upstream connections held by their sessions at once.
    pub held_connections_max: Option<Bounded<1, 100_000>>,
    /// How long a session waits for one.
    pub held_wait_ms: Option<Milliseconds>,
    /// How long a statement in a lane waits for an outsider's lock.
    pub lane_lock_timeout_ms: Option<Milliseconds>,
    /// How long units that were not sent wait for the server.
    pub server_wait_ms: Option<Milliseconds>,
    /// How long a unit may be about to wait in a lane.
    pub queue_wait_ms: Option<Milliseconds>,
    /// How long what the catalogue said is believed.
    pub catalogue_age_ms: Option<Milliseconds>,
    /// The server's settings for these clients, unless they send their own when they start.
    pub settings: BTreeMap<String, SettingValue>,
}

/// A number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const LEAST: u64, const MOST: u64>(u64);

/// Up to a day.
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

/// The value of a setting of the server, written as text, number or truth value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a setting's value is a text, a whole number, true or false")]
pub enum SettingValue {
    /// As it is.
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
    /// Whether it is for this user in this database.
    pub fn fits(&self, database: &str, user: &str) -> bool {
        self.database.as_deref().is_none_or(|wanted| wanted == database)
            && self.user.as_deref().is_none_or(|wanted| wanted == user)
    }

    /// Whether it is for the same clients as another.
    pub fn is_for_same(&self, other: &PoolTable) -> bool {
        (&self.database, &self.user) == (&other.database, &other.user)
    }

    /// For people: whom it is for.
    pub fn describe(&self) -> String {
        match (&self.database, &self.user) {
            (Some(database), Some(user)) => format!("user {user} in database {database}"),
            (Some(database), None) => format!("database {database}"),
            (None, Some(user)) => format!("user {user}"),
            (None, None) => "everyone".to_owned(),
        }
    }

    /// Puts its settings in front of the client's own options, so that what the client says wins.
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

    /// The configuration for the clients that it fits.
    pub fn apply(&self, config: &mut Config) {
        config.pack = self.pack.unwrap_or(config.pack);
        config.lanes = self.lanes.map_or(config.lanes, Bounded::get);
        for (value, target) in [
            (self.held_wait_ms, &mut config.held_wait),
            (self.lane_lock_timeout_ms, &mut config.lane_lock_timeout),
            (self.server_wait_ms, &mut config.server_wait),
            (self.queue_wait_ms, &mut config.queue_wait),
            (self.catalogue_age_ms, &mut config.catalogue_age),
        ] {
            *target = value.map_or(*target, Bounded::duration);
        }
    }
}

/// As the server reads one word of `options`.
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
    fn it_fits_whom_it_names() {
        let shop = table(r#"{"database": "shop"}"#).unwrap();
        assert!(shop.fits("shop", "ann") && !shop.fits("bank", "ann"));
        let ann = table(r#"{"database": "shop", "user": "ann"}"#).unwrap();
        assert!(ann.fits("shop", "ann") && !ann.fits("shop", "bob"));
        assert!(table("{}").unwrap().fits("any", "body"));
    }

    #[test]
    fn what_the_client_says_comes_behind_what_the_table_says() {
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
    fn nonsense_is_refused_with_words() {
        assert!(table(r#"{"lanes": 0}"#).unwrap_err().contains("0 must be 1 to 64"));
        assert!(table(r#"{"queue_wait_ms": -1}"#).unwrap_err().contains("-1 must be 1 to 86400000"));
        assert!(table(r#"{"lane": 1}"#).unwrap_err().contains("unknown field `lane`"));
        assert!(table(r#"{"settings": {"a": []}}"#).unwrap_err().contains("a text, a whole number"));
    }
}
