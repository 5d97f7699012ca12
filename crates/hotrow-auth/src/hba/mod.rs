//! The access file, in `pg_hba.conf` format. The first line that matches a client decides.

mod line;
mod tokens;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::limits;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The default without an access file: users who can log in on this machine have access.
const BUILT_IN: &str = "local all,hotrow all trust
host all,hotrow all 127.0.0.0/8 trust
host all,hotrow all ::1/128 trust";

/// The access file.
#[derive(Clone, Debug)]
pub struct Hba(Vec<Rule>);

/// One line of the access file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its line number in the file.
    pub line: usize,
    /// The required proof.
    pub method: Method,
    /// The certificate that is required in addition.
    pub certificate: Certificate,
    connection: Connection,
    databases: Vec<Database>,
    users: Vec<User>,
    network: Network,
}

/// The method with which a client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// No proof.
    Trust,
    Reject,
    /// A SCRAM proof.
    ScramSha256,
    /// An md5 hash if the secret allows it, otherwise SCRAM.
    Md5,
    /// The password in cleartext.
    Password,
    /// The client's certificate.
    Cert,
}

/// The certificate that a client has to present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// None.
    NotNeeded,
    Verified,
    /// A verified certificate with the user's name.
    OfUser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Database {
    All,
    SameUser,
    Replication,
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    All,
    Named(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    All,
    Of(IpNet),
}

/// A client that requests access.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// Its address. `None` for a Unix socket.
    pub address: Option<IpAddr>,
    /// Whether it uses TLS.
    pub tls: bool,
    /// The user name from the startup packet.
    pub user: &'a str,
    /// The requested database.
    pub database: &'a str,
    /// Whether the database is the gateway's console and not a database of the server.
    pub console: bool,
}

/// The reason why an access file is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct HbaError {
    /// The line number.
    pub line: usize,
    /// The problem and its solution.
    pub cause: String,
}

impl Hba {
    /// Parses an access file.
    pub fn parse(text: &str) -> Result<Self, HbaError> {
        let mut rules = Vec::new();
        for (line, fields) in tokens::lines(text) {
            let at = |cause| HbaError { line, cause };
            rules.push(line::parse(line, &fields.map_err(at)?).map_err(at)?);
            if rules.len() > limits::HBA_RULES_MAX {
                return Err(at(format!("there are more than {} lines", limits::HBA_RULES_MAX)));
            }
        }
        Ok(Hba(rules))
    }

    /// The default without an access file.
    pub fn built_in() -> Self {
        Hba::parse(BUILT_IN).expect("a test parses it")
    }

    /// The first line that matches.
    pub fn decide(&self, attempt: &LoginAttempt<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.fits(attempt))
    }

    /// The first line that gives access from another machine without a proof, or with a password that is
    /// readable on the network.
    pub fn insecure(&self) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            let asks_nothing = rule.method == Method::Trust && rule.certificate != Certificate::OfUser;
            let in_the_clear = rule.method == Method::Password && rule.connection != Connection::HostSsl;
            rule.connection != Connection::Local
                && !rule.network.is_loopback()
                && (asks_nothing || in_the_clear)
        })
    }
}

impl Rule {
    fn fits(&self, attempt: &LoginAttempt<'_>) -> bool {
        let connection = match (self.connection, attempt.address) {
            (Connection::Local, None) | (Connection::Host, Some(_)) => true,
            (Connection::HostSsl, Some(_)) => attempt.tls,
            (Connection::HostNoSsl, Some(_)) => !attempt.tls,
            (Connection::Local, Some(_)) | (_, None) => false,
        };
        connection
            && attempt.address.is_none_or(|address| self.network.has(address))
            && self.databases.iter().any(|database| database.is(attempt))
            && self.users.iter().any(|user| user.is(attempt.user))
    }
}

impl Database {
    /// The console has to be named explicitly, like replication in PostgreSQL. `all` means databases.
    fn is(&self, attempt: &LoginAttempt<'_>) -> bool {
        match self {
            Database::Named(name) => name == attempt.database,
            Database::All => !attempt.console,
            Database::SameUser => !attempt.console && attempt.user == attempt.database,
            Database::Replication => false, // replication clients are rejected before authentication
        }
    }
}

impl User {
    fn is(&self, user: &str) -> bool {
        match self {
            User::All => true,
            User::Named(name) => name == user,
        }
    }
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Network::All => true,
            Network::Of(network) => network.contains(&address.to_canonical()),
        }
    }

    fn is_loopback(self) -> bool {
        let four = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8));
        let six = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128));
        matches!(self, Network::Of(network) if four.contains(&network) || six.contains(&network))
    }
}

/// The methods as they are written in a line.
const METHODS: [(&str, Method); 6] = [
    ("trust", Method::Trust),
    ("reject", Method::Reject),
    ("scram-sha-256", Method::ScramSha256),
    ("md5", Method::Md5),
    ("password", Method::Password),
    ("cert", Method::Cert),
];

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = METHODS.iter().find(|(_, method)| method == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}
