//! Which clients are the same to the server: they share a pool.

/// What makes two clients the same to the server: the start-up parameters but for the application's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Vec<(String, String)>);

impl Identity {
    /// From a client's start-up parameters, user and database among them; the order in which they came doesn't matter.
    pub fn new(parameters: &[(String, String)]) -> Self {
        let mut parameters: Vec<_> =
            parameters.iter().filter(|(name, _)| !name.starts_with("_pq_.")).cloned().collect();
        parameters.sort();
        Identity(parameters)
    }

    /// The same without `client_encoding`, where that asks for UTF-8: half of the drivers say so, the others get it anyway
    /// from a server whose database has that encoding.
    pub fn without_utf8(&self) -> Option<Self> {
        let (_, value) = self.0.iter().find(|(name, _)| name == "client_encoding")?;
        let letters =
            value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let others = || self.0.iter().filter(|(name, _)| name != "client_encoding").cloned().collect();
        matches!(letters.as_str(), "utf8" | "unicode").then(|| Identity(others()))
    }

    /// The start-up parameters for the server.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.0
    }

    fn get(&self, wanted: &str) -> &str {
        self.0.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value)
    }

    /// As whom to log in.
    pub fn user(&self) -> &str {
        self.get("user")
    }

    /// Where.
    pub fn database(&self) -> &str {
        self.get("database")
    }

    /// For people: who, and where.
    pub fn describe(&self) -> String {
        format!("{}@{}", self.user(), self.database())
    }
}
