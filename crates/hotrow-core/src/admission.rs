//! Decides whether a client can join an open pool. The pool's connections do not show whether the client's
//! user can still log in, whether the name still means the same role, or whether the server's settings are
//! still the same.

use std::sync::Arc;
use std::time::Duration;

use hotrow_wire::SqlState;

use crate::limits;

/// Settings whose values differ between connections to one server, and between the servers of a failover.
const OF_ONE_CONNECTION: [&str; 2] = ["application_name", "in_hot_standby"];

/// The settings that the server reports on a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The settings that the server reports without a query.
    pub parameters: Vec<(String, String)>,
    /// What else matters to the gateway. None if the server has not been asked.
    pub defaults: Option<SessionDefaults>,
}

/// The settings with which the pool's connections begin, and the role that logs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDefaults {
    /// `default_transaction_isolation`.
    pub isolation: String,
    /// Whether `standard_conforming_strings` is on.
    pub standard_strings: bool,
    /// `client_encoding`.
    pub encoding: String,
    /// `lock_timeout`, unless it is off.
    pub lock_timeout: Option<Duration>,
    /// `statement_timeout`, unless it is off.
    pub statement_timeout: Option<Duration>,
    pub role: String,
    /// The OID of the role that logged in. Another role can take over its name.
    pub role_oid: String,
    pub deadlock_timeout: Option<Duration>,
    /// `client_connection_check_interval`, unless it is off or the server does not have it.
    pub client_check_interval: Option<Duration>,
    /// `search_path`. Connections with different ones would use different tables for one session.
    pub search_path: String,
}

impl SessionDefaults {
    /// The row of `session_defaults.sql`. None if it has other columns.
    pub fn read(row: Vec<Option<String>>) -> Option<Self> {
        let [isolation, strings, encoding, lock, statement, role, role_oid, deadlock, check, search_path]: [_;
            10] = row.into_iter().map(Option::unwrap_or_default).collect::<Vec<String>>().try_into().ok()?;
        let time = |milliseconds: String| {
            milliseconds.parse().ok().filter(|value| *value > 0).map(Duration::from_millis)
        };
        Some(SessionDefaults {
            isolation,
            standard_strings: strings == "on",
            encoding,
            lock_timeout: time(lock),
            statement_timeout: time(statement),
            role,
            role_oid,
            deadlock_timeout: time(deadlock),
            client_check_interval: time(check),
            search_path,
        })
    }
}

/// How long a transaction waits in the gateway for the others that work on its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPatience {
    /// While none of them ends. A server looks for a deadlock after the same time.
    pub without_end: Duration,
    /// In any case. The server counts its own timeouts from the time when it gets the statement, so with a timeout the
    /// statement has to be there soon.
    pub longest: Duration,
}

/// Whether the gateway has to check again if the user can log in. `age` is the age of the last check. A
/// change of the catalog through this gateway may have changed roles, so it makes a check due immediately.
pub fn is_due(age: Duration, catalog_changed: bool) -> bool {
    catalog_changed || age >= Duration::from_millis(limits::LOGIN_AGE_MS)
}

/// Whether a client has to leave if the server refuses a login of its user with this SQLSTATE while the pool
/// has `connections` connections. If only the connection limit is reached, the client can share the open
/// connections.
pub fn keeps_out(code: &str, connections: usize) -> bool {
    code != SqlState::TooManyConnections.code() || connections == 0
}

impl ServerSettings {
    /// Whether connections that were made under these settings differ from connections that are made now.
    pub fn are_outdated_by(&self, now: &Self) -> bool {
        self.defaults != now.defaults || self.contradicts(&now.parameters)
    }

    /// Whether the server ends a statement whose client has gone.
    pub fn ends_statements_of_gone_clients(&self) -> bool {
        self.defaults.as_ref().is_some_and(|defaults| defaults.client_check_interval.is_some())
    }

    /// Why statements of sessions with these settings cannot be packed, if so.
    pub fn unpackable(&self) -> Option<String> {
        let Some(SessionDefaults { isolation, standard_strings, encoding, .. }) = &self.defaults else {
            return Some("the server has not told its settings".to_owned());
        };
        if isolation != "read committed" {
            return Some(format!(
                "default_transaction_isolation is {isolation}, and only read committed can be packed"
            ));
        }
        if !standard_strings {
            return Some("standard_conforming_strings is off".to_owned());
        }
        if !matches!(&**encoding, "UTF8" | "SQL_ASCII") {
            return Some(format!("client_encoding is {encoding}, and only UTF8 and SQL_ASCII can be packed"));
        }
        None
    }

    /// How long transactions wait in the gateway for a row.
    pub fn row_patience(&self) -> RowPatience {
        let time = |which: fn(&SessionDefaults) -> Option<Duration>| self.defaults.as_ref().and_then(which);
        let timeouts =
            [time(|one| one.lock_timeout), time(|one| one.statement_timeout)].into_iter().flatten();
        RowPatience {
            without_end: time(|one| one.deadlock_timeout).unwrap_or(Duration::from_secs(1)),
            longest: timeouts.min().map_or(Duration::from_secs(3600), |timeout| timeout / 10),
        }
    }

    /// Whether one of these settings had another value.
    pub fn contradicts(&self, said: &[(String, String)]) -> bool {
        said.iter()
            .filter(|(name, _)| !OF_ONE_CONNECTION.contains(&&**name))
            .any(|(name, value)| self.value(name).is_some_and(|before| before != value))
    }

    /// The settings that changed for a client that knows the earlier ones. The client's own name is left out
    /// because the client sets it.
    fn changed_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.parameters.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(name, value)| *name != "application_name" && earlier.value(name) != Some(*value))
    }

    fn value(&self, wanted: &str) -> Option<&str> {
        self.parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value)
    }
}

/// The values of the server's settings that a client was told: at its login, by the gateway, or by a connection that its
/// session held.
#[derive(Debug)]
pub struct ReportedSettings {
    values: Arc<ServerSettings>,
    /// The pool's settings that they were last compared with. A connection may know of a change before its pool does, and the
    /// client must not be told the earlier value again.
    compared: Arc<ServerSettings>,
    /// The number of that pool.
    pool: u64,
}

impl ReportedSettings {
    /// For a client that was told these, of the pool with this number, at its login.
    pub fn new(pool: u64, values: Arc<ServerSettings>) -> Self {
        ReportedSettings { compared: values.clone(), values, pool }
    }

    /// A connection has told the client this value.
    pub fn report(&mut self, name: &str, value: &str) {
        if self.values.value(name).is_some_and(|known| known != value) {
            let values = &mut Arc::make_mut(&mut self.values).parameters;
            let known = values.iter_mut().find(|(known, _)| known == name);
            known.expect("it has a value").1 = value.to_owned();
        }
    }

    /// Whether the pool has other settings than at the last comparison.
    pub fn are_outdated_by(&self, pool: &Arc<ServerSettings>) -> bool {
        !Arc::ptr_eq(&self.compared, pool)
    }

    /// Whether the client knows a value that the pool did not know at the last comparison.
    fn is_newer(&self, name: &str) -> bool {
        self.values.value(name) != self.compared.value(name)
    }

    /// Whether a connection has told the client of a change of which the pool does not know. The value may have changed back
    /// since then, so the pool has to ask the server.
    pub fn has_news(&self) -> bool {
        let is_news =
            |(name, _): &(String, String)| !OF_ONE_CONNECTION.contains(&&**name) && self.is_newer(name);
        !Arc::ptr_eq(&self.values, &self.compared) && self.values.parameters.iter().any(is_news)
    }

    /// Compares the values with the settings of the client's pool, which has this number. Returns those that the client has to
    /// be told. A pool that the client has just entered may not know of a change of which a connection has told the client.
    pub fn compare(&mut self, number: u64, pool: Arc<ServerSettings>) -> Vec<(String, String)> {
        let has_entered = number != self.pool;
        let keeps = |name: &str| has_entered && self.is_newer(name);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let (kept, changed): (Vec<_>, Vec<_>) =
            pool.changed_since(&self.values).map(owned).partition(|(name, _)| keeps(name));
        if kept.is_empty() {
            self.values = pool.clone(); // all clients that were told the same share it
        } else {
            changed.iter().for_each(|(name, value)| self.report(name, value));
        }
        (self.compared, self.pool) = (pool, number);
        changed
    }

    /// What a connection has to agree with, so that the client need not be told anything.
    pub fn values(&self) -> &Arc<ServerSettings> {
        &self.values
    }

    /// Whether a connection has these values.
    pub fn agree_with(&self, connection: &[(String, String)]) -> bool {
        let agrees = |(name, value): &(String, String)| {
            OF_ONE_CONNECTION.contains(&&**name)
                || self.values.value(name).is_none_or(|reported| reported == value)
        };
        connection.iter().all(agrees)
    }

    /// The session's connection has these settings, and may have reported a change before the pool knows of it: to another
    /// session, or in an answer to the gateway. Returns what the client has to be told. `is_certain` says for which settings the
    /// value is the present one. Another one may be older than what the client was told.
    pub fn takes(
        &mut self,
        connection: &[(String, String)],
        is_certain: impl Fn(&str) -> bool,
    ) -> Vec<(String, String)> {
        let differs = |(place, setting): &(usize, &(String, String))| {
            let (name, value) = setting;
            // A server reports its settings in one order.
            self.values.parameters.get(*place) != Some(*setting)
                && !OF_ONE_CONNECTION.contains(&&**name)
                && self.values.value(name).is_some_and(|reported| reported != value)
                && (is_certain(name) || !self.is_newer(name))
        };
        let changed: Vec<_> =
            connection.iter().enumerate().filter(differs).map(|(_, setting)| setting.clone()).collect();
        changed.iter().for_each(|(name, value)| self.report(name, value));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(parameters: &[(&str, &str)], role_oid: &str) -> ServerSettings {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ServerSettings {
            parameters: parameters.iter().map(owned).collect(),
            defaults: Some(SessionDefaults { role_oid: role_oid.to_owned(), ..SessionDefaults::default() }),
        }
    }

    /// What a client is told of the pool's settings.
    fn compared(reported: &mut ReportedSettings, pool: &Arc<ServerSettings>) -> Vec<String> {
        let reported = reported.compare(1, pool.clone());
        reported.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn a_login_is_valid_for_a_limited_time() {
        assert!(!is_due(Duration::ZERO, false));
        assert!(!is_due(Duration::from_millis(limits::LOGIN_AGE_MS - 1), false));
        assert!(is_due(Duration::from_millis(limits::LOGIN_AGE_MS), false));
        assert!(is_due(Duration::ZERO, true));
    }

    #[test]
    fn at_the_connection_limit_a_client_shares_open_connections() {
        assert!(!keeps_out("53300", 1));
        assert!(keeps_out("53300", 0));
        for code in ["28000", "28P01", "42501", "3D000"] {
            assert!(keeps_out(code, 1), "{code}");
        }
    }

    #[test]
    fn a_client_gets_the_changed_settings_except_its_own_name() {
        let before =
            settings(&[("TimeZone", "UTC"), ("DateStyle", "ISO, MDY"), ("application_name", "a")], "");
        let now =
            settings(&[("TimeZone", "Asia/Tokyo"), ("DateStyle", "ISO, MDY"), ("application_name", "b")], "");
        let mut reported = ReportedSettings::new(1, Arc::new(before));
        let now = Arc::new(now);
        assert!(reported.are_outdated_by(&now));
        assert_eq!(compared(&mut reported, &now), ["TimeZone=Asia/Tokyo"]);
        assert!(!reported.are_outdated_by(&now));
        assert_eq!(compared(&mut reported, &now), [""; 0]);
    }

    #[test]
    fn a_change_that_a_connection_has_told_is_not_told_again() {
        let [first, second] = ["UTC", "Asia/Tokyo"].map(|zone| Arc::new(settings(&[("TimeZone", zone)], "")));
        let mut reported = ReportedSettings::new(1, first.clone());
        reported.report("TimeZone", "Asia/Tokyo");
        reported.report("search_path", "unknown at the login");
        assert!(reported.has_news());
        assert!(!reported.are_outdated_by(&first), "the pool does not know of the change");
        assert_eq!(compared(&mut reported, &second), [""; 0]);
        assert!(!reported.has_news());
        assert_eq!(first.value("TimeZone"), Some("UTC"), "other clients are told");
        // The value has changed back before the pool was asked.
        reported.report("TimeZone", "UTC");
        assert_eq!(compared(&mut reported, &Arc::new((*second).clone())), ["TimeZone=Asia/Tokyo"]);
    }

    #[test]
    fn a_pool_that_is_entered_may_not_know_what_a_connection_has_told() {
        let of_server = |zone, style| Arc::new(settings(&[("TimeZone", zone), ("DateStyle", style)], ""));
        let mut reported = ReportedSettings::new(1, of_server("UTC", "ISO"));
        reported.report("DateStyle", "SQL");
        let entered = reported.compare(2, of_server("CET", "ISO"));
        assert_eq!(entered, [("TimeZone".to_owned(), "CET".to_owned())]);
        assert_eq!(reported.compare(2, of_server("CET", "SQL")), []);
        assert_eq!(reported.compare(2, of_server("CET", "ISO")).len(), 1, "it was asked again");
    }

    #[test]
    fn a_connection_may_know_of_a_change_before_its_pool() {
        let of_server = |zone| Arc::new(settings(&[("TimeZone", zone), ("in_hot_standby", "off")], ""));
        let connection =
            |zone| settings(&[("TimeZone", zone), ("in_hot_standby", "on"), ("x", "y")], "").parameters;
        let mut reported = ReportedSettings::new(1, of_server("UTC"));
        assert_eq!(
            reported.takes(&connection("CET"), |_| false),
            [("TimeZone".to_owned(), "CET".to_owned())]
        );
        assert_eq!(reported.takes(&connection("CET"), |_| false), []);
        assert_eq!(
            reported.takes(&connection("UTC"), |_| false),
            [],
            "a connection that has not noticed the change yet"
        );
        // Of its own settings, the session's connection has the values that apply.
        assert_eq!(reported.takes(&connection("UTC"), |name| name == "TimeZone").len(), 1);
    }

    #[test]
    fn another_role_or_another_setting_makes_connections_outdated() {
        let known = settings(&[("TimeZone", "UTC"), ("application_name", "hotrow")], "16384");
        assert!(!known.are_outdated_by(&known));
        assert!(known.are_outdated_by(&settings(&[("TimeZone", "UTC")], "16385")));
        assert!(known.are_outdated_by(&settings(&[("TimeZone", "Asia/Tokyo")], "16384")));
        let other_name =
            [("TimeZone", "UTC"), ("application_name", "hotrow lane 0"), ("in_hot_standby", "on")];
        assert!(!known.are_outdated_by(&settings(&other_name, "16384")));
        assert!(
            !known.contradicts(&settings(&[("search_path", "a")], "").parameters),
            "nothing was known of it"
        );
    }
}
