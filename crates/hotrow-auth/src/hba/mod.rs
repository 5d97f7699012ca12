//! The list of who may come how, in the format of `pg_hba.conf`. The first line that fits a client decides.

mod line;
mod tokens;

#[cfg(test)]
mod tests;

use std::fmt;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use hotrow_core::limits;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// In force where no list is named: who can log in on this machine may come.
const BUILT_IN: &str = "local all,hotrow all trust
host all,hotrow all 127.0.0.0/8 trust
host all,hotrow all ::1/128 trust";

/// The list.
#[derive(Clone, Debug)]
pub struct Hba(Vec<Rule>);

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the file.
    pub line: usize,
    /// What a client has to show.
    pub method: Method,
    /// The certificate it has to show as well.
    pub certificate: Certificate,
    connection: Connection,
    databases: Vec<Database>,
    users: Vec<User>,
    network: Network,
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// It can't.
    Reject,
    /// By a SCRAM proof.
    ScramSha256,
    /// By an md5 hash if that is what is known, else by SCRAM.
    Md5,
    /// By the password as it is.
    Password,
    /// By its certificate.
    Cert,
}

/// Which certificate a client has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// None.
    NotNeeded,
    /// One that was verified.
    Verified,
    /// One that was verified and has the user's name.
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

/// A client, as the list sees it.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// Where it connects from; none on a Unix socket.
    pub address: Option<IpAddr>,
    /// Whether it came over TLS.
    pub tls: bool,
    /// Who it says it is.
    pub user: &'a str,
    /// Where it wants to go.
    pub database: &'a str,
    /// Whether that is the gateway's console and no database of the server.
    pub console: bool,
}

/// Why a list can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct HbaError {
    /// Which line.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub cause: String,
}

impl Hba {
    /// Reads a list.
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

    /// The list where none is named.
    pub fn built_in() -> Self {
        Hba::parse(BUILT_IN).expect("a test reads it")
    }

    /// The first line that fits.
    pub fn decide(&self, attempt: &LoginAttempt<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.fits(attempt))
    }

    /// The first line that lets somebody in from another machine who has shown nothing, or has shown a password to everybody
    /// between us.
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
    /// The console has to be named, as replication has in PostgreSQL: who writes `all` thinks of databases.
    fn is(&self, attempt: &LoginAttempt<'_>) -> bool {
        match self {
            Database::Named(name) => name == attempt.database,
            Database::All => !attempt.console,
            Database::SameUser => !attempt.console && attempt.user == attempt.database,
            Database::Replication => false, // such clients are sent away before anybody asks who they are
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

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Trust => "trust",
            Method::Reject => "reject",
            Method::ScramSha256 => "scram-sha-256",
            Method::Md5 => "md5",
            Method::Password => "password",
            Method::Cert => "cert",
        })
    }
}
