//! Which clients the server cannot tell apart: they share a pool.

use hotrow_core::settings::Settings;

/// The start-up parameters without the application's name, and the settings that clients have changed since. Clients with
/// equal ones are the same to the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    parameters: Vec<(String, String)>,
    settings: Settings,
}

impl Identity {
    /// From a client's start-up parameters, including user and database, in any order.
    pub fn new(parameters: &[(String, String)]) -> Self {
        let mut parameters: Vec<_> =
            parameters.iter().filter(|(name, _)| !name.starts_with("_pq_.")).cloned().collect();
        parameters.sort();
        Identity { parameters, settings: Settings::default() }
    }

    /// The same with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Identity { parameters: self.parameters.clone(), settings }
    }

    /// The same without `client_encoding` if its value is UTF-8: half of the drivers send it, and the others get UTF-8
    /// from a server whose database has that encoding.
    pub fn without_utf8(&self) -> Option<Self> {
        let (_, value) = self.parameters.iter().find(|(name, _)| name == "client_encoding")?;
        let letters =
            value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let others = self.parameters.iter().filter(|(name, _)| name != "client_encoding");
        matches!(letters.as_str(), "utf8" | "unicode")
            .then(|| Identity { parameters: others.cloned().collect(), settings: self.settings.clone() })
    }

    /// The start-up parameters for the server.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// The settings that connections get after the log-in.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn get(&self, wanted: &str) -> &str {
        self.parameters.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value)
    }

    /// The user that logs in.
    pub fn user(&self) -> &str {
        self.get("user")
    }

    /// The database.
    pub fn database(&self) -> &str {
        self.get("database")
    }

    /// User and database as text for people.
    pub fn describe(&self) -> String {
        format!("{}@{}", self.user(), self.database())
    }
}
