//! Asks a server about statements, and decides about them as a gateway in front of it would.

use hotrow_connect::asker::Asker;
use hotrow_connect::config::UpstreamConfig;
use hotrow_connect::description::parameter_types;
use hotrow_connect::login::Login;
use hotrow_connect::upstream::{self, Upstream};
use hotrow_core::admission::ServerSettings;
use hotrow_core::classify::{self, Candidate, Decision};

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be asked.
    #[error(
        "cannot ask the server about the statement: {0}; check that the server runs, and that --upstream names its host, \
         port, user, password and database, for example postgres://user@127.0.0.1:5432/shop"
    )]
    Server(#[from] upstream::Error),
    /// The server refuses the statement itself.
    #[error(
        "the server rejects `{statement}`: {message} ({code}); correct the statement, or connect to its database with --upstream"
    )]
    Rejected {
        /// The statement, or the one of several.
        statement: String,
        /// The server's message.
        message: String,
        /// The server's SQLSTATE.
        code: String,
    },
    /// The decision needs the server's description of a text that someone else has written, with a constant in it.
    #[error(
        "the statement contains a constant, and a server that describes the statement converts it, perhaps with a function of a \
         user; check the statement with hotrow explain"
    )]
    Constant,
}

impl Error {
    /// The error with the server's SQLSTATE in place of its message, which can contain a constant of the statement.
    pub fn without_values(&self) -> String {
        match self {
            Self::Server(upstream::Error::Refused { code, .. }) | Self::Rejected { code, .. } => {
                format!("the server refuses the statement ({code})")
            }
            Self::Server(_) | Self::Constant => self.to_string(),
        }
    }
}

/// Decides about statements that clients of the URL's user and database send, one after another.
pub struct Judge {
    server: UpstreamConfig,
    parameters: Vec<(String, String)>,
    login: Login,
    /// A session like those of the clients.
    session: Upstream,
    settings: ServerSettings,
    asker: Option<Asker>,
}

impl Judge {
    /// Connects to the server. The sessions get these settings.
    pub async fn open(server: UpstreamConfig, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let own = [("user", &*server.user), ("database", &*server.database), ("application_name", "hotrow")];
        let all = own.iter().chain(settings);
        let parameters: Vec<_> = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let login = Login::new(&server.user, server.credential());
        let mut session = Upstream::connect(&server, &parameters, &login, false).await?;
        let settings = session.server_settings().await?;
        Ok(Judge { server, parameters, login, session, settings, asker: None })
    }

    /// Why no statement of the user can be packed.
    pub fn unpackable(&self) -> Option<String> {
        self.settings.unpackable()
    }

    /// The decision about the shape of a statement, whose parameters have these types (0 if a type is not known).
    pub async fn decide(
        &mut self,
        candidate: &Candidate,
        shape: &str,
        types: &[u32],
    ) -> Result<Decision, Error> {
        let mut asker = match self.asker.take() {
            Some(asker) => asker,
            None => {
                let connection = Upstream::connect(&self.server, &self.parameters, &self.login, true).await?;
                // The decision says that lanes to nodes need a setting.
                Asker::new(connection, &self.server.user, true).await?
            }
        };
        let facts = asker.facts(candidate).await?;
        let described = match candidate.needs_description() {
            true => describe(&mut asker.upstream, shape, types).await?,
            false => None,
        };
        self.asker = Some(asker);
        Ok(classify::decide(candidate, &facts, described.as_deref().unwrap_or(types)))
    }

    /// Lets the server parse the statement without running it: a syntax error or a missing table says nothing about packing.
    pub async fn parse(&mut self, shape: &str, types: &[u32]) -> Result<(), Error> {
        match self.session.prepare(b"", shape.as_bytes(), &oids(types)).await? {
            // A driver that sends the statement may declare the types of its parameters.
            Some(upstream::Error::Refused { code, message, .. })
                if !matches!(code.as_str(), "42P18" | "42P08") =>
            {
                Err(Error::Rejected { statement: shape.to_owned(), message, code })
            }
            _ => Ok(()),
        }
    }
}

/// The types that the server gives the parameters of a statement. None if it cannot describe the statement, or if a table is locked.
async fn describe(
    upstream: &mut Upstream,
    shape: &str,
    types: &[u32],
) -> Result<Option<Vec<u32>>, upstream::Error> {
    let description = match upstream.describe(shape.as_bytes(), &oids(types)).await {
        Err(error) if error.is_lock_timeout() => None,
        description => description?,
    };
    let oid = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
    let types = description.as_ref().and_then(parameter_types);
    Ok(types.map(|types| types.chunks_exact(4).map(oid).collect()))
}

/// Types as a Parse message has them.
fn oids(types: &[u32]) -> Vec<u8> {
    types.iter().flat_map(|oid| oid.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_values_repeats_no_message_of_the_server() {
        let (code, message) =
            ("22008".to_owned(), "date/time field value out of range: \"31.12.26\"".to_owned());
        let rejected = Error::Rejected {
            statement: "select 1".to_owned(),
            message: message.clone(),
            code: code.clone(),
        };
        let refused = Error::from(upstream::Error::Refused { code, message, frame: <_>::default() });
        for error in [rejected, refused] {
            assert!(error.to_string().contains("31.12.26"));
            assert_eq!(error.without_values(), "the server refuses the statement (22008)");
        }
        assert!(Error::from(upstream::Error::NotBound).without_values().contains("channel_binding"));
    }
}
