//! Whether a client gets into a pool that is open: the pool's connections say nothing of whether its user may still log in, nor
//! whether the name still means the role, and the settings, that they were made with.

use std::time::Duration;

use crate::limits;

/// What the server refuses a log-in with if it, or the role, or the database has as many connections as are allowed.
const TOO_MANY_CONNECTIONS: &str = "53300";
/// Settings whose values differ between connections to one server, and between the servers of a failover.
const OF_ONE_CONNECTION: [&str; 2] = ["application_name", "in_hot_standby"];

/// What the server says on a connection that has just logged in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The settings that it reports by itself.
    pub parameters: Vec<(String, String)>,
    /// Its answer when it is asked for the other settings that matter to the gateway, and for the role's OID.
    pub answer: Option<Vec<Option<String>>>,
}

/// Whether the server has to be asked again if the user may log in, so long after the answer. Roles may have changed at once if
/// the catalogue has, through this gateway.
pub fn is_due(age: Duration, catalogue_changed: bool) -> bool {
    catalogue_changed || age >= Duration::from_millis(limits::LOG_IN_AGE_MS)
}

/// Whether a client has to leave if the server refuses its user's log-in with this SQLSTATE, while the pool has so many
/// connections. Where no connection more is allowed, the client can share those that there are.
pub fn keeps_out(code: &str, connections: usize) -> bool {
    code != TOO_MANY_CONNECTIONS || connections == 0
}

impl ServerSettings {
    /// Whether connections that were made when the server said this differ from those that are made now.
    pub fn are_outdated_by(&self, now: &Self) -> bool {
        self.answer != now.answer || self.contradicts(&now.parameters)
    }

    /// Whether one of these settings had another value.
    pub fn contradicts(&self, said: &[(String, String)]) -> bool {
        said.iter()
            .filter(|(name, _)| !OF_ONE_CONNECTION.contains(&&**name))
            .any(|(name, value)| self.value(name).is_some_and(|before| before != value))
    }

    /// The settings that a client has to be told which was told the earlier ones. Its own name is the client's to know.
    pub fn changed_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.parameters.iter().map(|(name, value)| (&**name, &**value));
        all.filter(|(name, value)| *name != "application_name" && earlier.value(name) != Some(*value))
    }

    fn value(&self, wanted: &str) -> Option<&str> {
        self.parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(parameters: &[(&str, &str)], answer: &[&str]) -> ServerSettings {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ServerSettings {
            parameters: parameters.iter().map(owned).collect(),
            answer: Some(answer.iter().map(|value| Some((*value).to_owned())).collect()),
        }
    }

    #[test]
    fn a_log_in_counts_for_a_while() {
        assert!(!is_due(Duration::ZERO, false));
        assert!(!is_due(Duration::from_millis(limits::LOG_IN_AGE_MS - 1), false));
        assert!(is_due(Duration::from_millis(limits::LOG_IN_AGE_MS), false));
        assert!(is_due(Duration::ZERO, true));
    }

    #[test]
    fn only_a_limit_of_connections_lets_a_client_share_those_that_there_are() {
        assert!(!keeps_out("53300", 1));
        assert!(keeps_out("53300", 0));
        for code in ["28000", "28P01", "42501", "3D000"] {
            assert!(keeps_out(code, 1), "{code}");
        }
    }

    #[test]
    fn a_client_is_told_what_has_changed_but_for_its_own_name() {
        let before =
            settings(&[("TimeZone", "UTC"), ("DateStyle", "ISO, MDY"), ("application_name", "a")], &[]);
        let now = settings(
            &[("TimeZone", "Asia/Tokyo"), ("DateStyle", "ISO, MDY"), ("application_name", "b")],
            &[],
        );
        assert_eq!(now.changed_since(&before).collect::<Vec<_>>(), [("TimeZone", "Asia/Tokyo")]);
        assert_eq!(now.changed_since(&now).count(), 0);
    }

    #[test]
    fn another_role_or_another_setting_makes_connections_outdated() {
        let known =
            settings(&[("TimeZone", "UTC"), ("application_name", "hotrow")], &["read committed", "16384"]);
        assert!(!known.are_outdated_by(&known));
        assert!(known.are_outdated_by(&settings(&[("TimeZone", "UTC")], &["read committed", "16385"])));
        assert!(
            known.are_outdated_by(&settings(&[("TimeZone", "Asia/Tokyo")], &["read committed", "16384"]))
        );
        let other_name =
            [("TimeZone", "UTC"), ("application_name", "hotrow lane 0"), ("in_hot_standby", "on")];
        assert!(!known.are_outdated_by(&settings(&other_name, &["read committed", "16384"])));
        assert!(
            !known.contradicts(&settings(&[("search_path", "a")], &[]).parameters),
            "nothing was known of it"
        );
    }
}
