//! A client's start-up packet, read as PostgreSQL reads it: the user, the database, the client's name, and the
//! parameters for the server.

use hotrow_core::limits::IDENTIFIER_BYTES_MAX;

use crate::operator::console;

/// A client's start-up parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartUp {
    /// The user; empty if the packet names none.
    pub user: String,
    /// The database, which is the user's name if the packet names none.
    pub database: String,
    /// Whether the client asks for the console. A packet that names no database never does.
    pub console: bool,
    /// The client's name for itself, if the packet has one.
    pub application_name: Option<String>,
    /// User, database and settings for the server, without the client's name.
    pub parameters: Vec<(String, String)>,
}

impl StartUp {
    /// From the parameters of the packet, which has each name once.
    pub fn new(parameters: &[(String, String)]) -> Self {
        let get = |wanted: &str| {
            parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| cut(value).to_owned())
        };
        let user = get("user").unwrap_or_default();
        let named = get("database").filter(|database| !database.is_empty());
        let console = named.as_deref() == Some(console::DATABASE);
        let database = named.unwrap_or_else(|| user.clone());
        let (mut application_name, mut others) = (None, Vec::new());
        for (name, value) in parameters {
            if name.eq_ignore_ascii_case("application_name") {
                application_name = Some(value.clone());
            } else if !matches!(name.as_str(), "user" | "database") {
                others.push((name.clone(), value.clone()));
            }
        }
        others.push(("user".to_owned(), user.clone()));
        others.push(("database".to_owned(), database.clone()));
        StartUp { user, database, console, application_name, parameters: others }
    }
}

fn cut(name: &str) -> &str {
    let end = (0..=name.len().min(IDENTIFIER_BYTES_MAX)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start_up(pairs: &[(&str, &str)]) -> StartUp {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        StartUp::new(&pairs.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn without_a_database_the_database_has_the_users_name() {
        for pairs in [&[("user", "ann")][..], &[("database", ""), ("user", "ann")]] {
            let start_up = start_up(pairs);
            assert_eq!((&*start_up.user, &*start_up.database), ("ann", "ann"), "{pairs:?}");
            let parameters =
                [("user", "ann"), ("database", "ann")].map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(start_up.parameters, parameters);
        }
    }

    #[test]
    fn only_a_client_that_names_the_console_reaches_it() {
        assert!(start_up(&[("user", "ann"), ("database", "hotrow")]).console);
        assert!(start_up(&[("user", "hotrow"), ("database", "hotrow")]).console);
        assert!(!start_up(&[("user", "hotrow")]).console);
        assert!(!start_up(&[("user", "hotrow"), ("database", "")]).console);
    }

    #[test]
    fn the_clients_name_is_found_in_any_case_and_long_names_are_cut() {
        let long = "é".repeat(40);
        let start_up = start_up(&[("user", &long), ("APPLICATION_NAME", "till"), ("work_mem", "1MB")]);
        assert_eq!(start_up.application_name.as_deref(), Some("till"));
        assert_eq!(start_up.user, "é".repeat(31));
        assert_eq!(start_up.parameters[0].0, "work_mem");
        assert_eq!(start_up.parameters.len(), 3);
    }
}
