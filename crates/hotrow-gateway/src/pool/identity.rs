//! Which clients a server cannot tell apart: they share a pool.

use std::sync::Arc;

use hotrow_core::settings::Settings;

use crate::config::PoolTable;
use crate::config::routes::Route;

/// The server, the startup parameters without the application's name, and the settings that clients have changed since.
/// Clients with equal ones are the same to the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    route: Arc<Route>,
    /// The database's name for the clients.
    database: String,
    parameters: Vec<(String, String)>,
    settings: Settings,
}

impl Identity {
    /// From a client's startup parameters, including user and database, in any order. The route decides which user and
    /// database they are at the server.
    pub fn new(route: Arc<Route>, parameters: &[(String, String)]) -> Self {
        let mut parameters: Vec<_> =
            parameters.iter().filter(|(name, _)| !name.starts_with("_pq_.")).cloned().collect();
        let mut database = String::new();
        for (name, value) in &mut parameters {
            match (name.as_str(), route.forced_user()) {
                ("database", _) => {
                    database.clone_from(value);
                    route.database(&database).clone_into(value);
                }
                ("user", Some(user)) => user.clone_into(value),
                _ => {}
            }
        }
        parameters.sort();
        Identity { route, database, parameters, settings: Settings::default() }
    }

    /// The same with more startup parameters of a `[[pool]]` table.
    pub fn with_table(mut self, table: &PoolTable) -> Self {
        table.put_settings(&mut self.parameters);
        self.parameters.sort();
        self
    }

    /// The same with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Identity { settings, ..self.clone() }
    }

    /// The same without `client_encoding` if its value is UTF-8: half of the drivers send it, and the others get UTF-8
    /// from a server whose database has that encoding.
    pub fn without_utf8(&self) -> Option<Self> {
        let (_, value) = self.parameters.iter().find(|(name, _)| name == "client_encoding")?;
        let letters =
            value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let others = self.parameters.iter().filter(|(name, _)| name != "client_encoding");
        matches!(letters.as_str(), "utf8" | "unicode")
            .then(|| Identity { parameters: others.cloned().collect(), ..self.clone() })
    }

    /// The startup parameters for the server.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// The settings that connections get after the login.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn get(&self, wanted: &str) -> &str {
        self.parameters.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value)
    }

    /// Where its clients get to.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// The user that logs in at the server.
    pub fn user(&self) -> &str {
        self.get("user")
    }

    /// The database's name for the clients.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The database's name at the server.
    pub fn database_there(&self) -> &str {
        self.get("database")
    }

    /// User and database as text for people.
    pub fn describe(&self) -> String {
        format!("{}@{}", self.user(), self.database())
    }
}
