//! The fields of a line of `pg_hba.conf`. A field that the gateway does not support is an error that says
//! what to write instead.

use core::net::IpAddr;
use ipnet::IpNet;

use super::tokens::{Field, Token};
use super::{Certificate, Connection, Database, METHODS, Method, Network, Rule, User};

/// Parses one line.
pub fn parse(line: usize, fields: &[Field]) -> Result<Rule, String> {
    let mut fields = fields.iter();
    let connection = connection(single(fields.next(), "type")?)?;
    let databases = list(fields.next(), "databases", database)?;
    let users = list(fields.next(), "users", user)?;
    let network = match connection {
        Connection::Local => Network::All,
        _ => network(&mut fields)?,
    };
    let method = method(single(fields.next(), "method")?)?;
    let mut certificate = Certificate::NotNeeded;
    for field in fields {
        certificate = option(single(Some(field), "option")?, connection)?;
    }
    match (method, connection) {
        (Method::Cert, Connection::HostSsl) => certificate = Certificate::OfUser,
        (Method::Cert, _) => return Err("cert needs TLS: write hostssl".to_owned()),
        (Method::Password, Connection::Host | Connection::HostNoSsl) => {
            let cause = "password sends the password in cleartext: write hostssl, or use scram-sha-256";
            return Err(cause.to_owned());
        }
        _ => {}
    }
    Ok(Rule { line, method, certificate, connection, databases, users, network })
}

fn single<'a>(field: Option<&'a Field>, what: &str) -> Result<&'a Token, String> {
    match field.map(Vec::as_slice) {
        Some([token]) => Ok(token),
        Some(_) => Err(format!("only one {what} is allowed")),
        None => Err(format!("field missing: {what}")),
    }
}

fn list<T>(
    field: Option<&Field>,
    what: &str,
    read: impl Fn(&Token) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    field.ok_or_else(|| format!("field missing: {what}"))?.iter().map(read).collect()
}

fn connection(token: &Token) -> Result<Connection, String> {
    match &*token.text {
        "local" => Ok(Connection::Local),
        "host" => Ok(Connection::Host),
        "hostssl" => Ok(Connection::HostSsl),
        "hostnossl" => Ok(Connection::HostNoSsl),
        "hostgssenc" | "hostnogssenc" => {
            Err(format!("{}: GSS encryption is not supported; write host, or remove the line", token.text))
        }
        "include" | "include_if_exists" | "include_dir" => {
            Err(format!("{}: other files are not supported; put their lines here", token.text))
        }
        other => Err(format!("{other:?} is not a connection type: write local, host, hostssl or hostnossl")),
    }
}

fn database(token: &Token) -> Result<Database, String> {
    match token.keyword() {
        Some("all") => Ok(Database::All),
        Some("sameuser") => Ok(Database::SameUser),
        Some("replication") => Ok(Database::Replication),
        Some(role @ ("samerole" | "samegroup")) => {
            Err(format!("{role}: the gateway does not know role memberships; name the databases"))
        }
        Some(text) => unnamed(text, "databases").map(|()| Database::Named(text.to_owned())),
        None => Ok(Database::Named(token.text.clone())),
    }
}

fn user(token: &Token) -> Result<User, String> {
    match token.keyword() {
        Some("all") => Ok(User::All),
        Some(text) if text.starts_with('+') => {
            Err(format!("{text}: the gateway does not know role memberships; name the users"))
        }
        Some(text) => unnamed(text, "users").map(|()| User::Named(text.to_owned())),
        None => Ok(User::Named(token.text.clone())),
    }
}

/// Forms of names that PostgreSQL supports and the gateway does not.
fn unnamed(text: &str, what: &str) -> Result<(), String> {
    if text.starts_with('/') {
        return Err(format!("{text}: regular expressions are not supported; name the {what}"));
    }
    if text.starts_with('@') {
        return Err(format!("{text}: other files are not supported; name the {what} here"));
    }
    Ok(())
}

fn network<'a>(fields: &mut impl Iterator<Item = &'a Field>) -> Result<Network, String> {
    let token = single(fields.next(), "address")?;
    match token.keyword() {
        Some("all") => return Ok(Network::All),
        Some(same @ ("samehost" | "samenet")) => {
            return Err(format!("{same}: the gateway does not know its own network; write the addresses"));
        }
        _ => {}
    }
    let wrong = || {
        format!(
            "{:?} is not an address: write for example 10.0.0.0/8, ::1/128 or all; host names are not supported",
            token.text
        )
    };
    if token.text.contains('/') {
        return token.text.parse().map(Network::Of).map_err(|_| wrong());
    }
    let address: IpAddr = token.text.parse().map_err(|_| wrong())?;
    let mask = single(fields.next(), "mask")
        .map_err(|_| format!("{address} has no mask: write {address}/32 or /128 for a single host"))?;
    let network = mask.text.parse().ok().and_then(|mask| IpNet::with_netmask(address, mask).ok());
    network.map(Network::Of).ok_or_else(|| format!("{:?} is not a mask for {address}", mask.text))
}

fn method(token: &Token) -> Result<Method, String> {
    let Some((_, method)) = METHODS.iter().find(|(name, _)| *name == token.text) else {
        let wanted = "write trust, reject, scram-sha-256, md5, password or cert";
        return Err(format!("{:?} is not a supported method: {wanted}", token.text));
    };
    Ok(*method)
}

fn option(token: &Token, connection: Connection) -> Result<Certificate, String> {
    let certificate = match &*token.text {
        "clientcert=verify-full" => Certificate::OfUser,
        "clientcert=verify-ca" => Certificate::Verified,
        other => {
            let cause = "is not a supported option: use clientcert=verify-full or clientcert=verify-ca";
            return Err(format!("{other:?} {cause}"));
        }
    };
    match connection {
        Connection::HostSsl => Ok(certificate),
        _ => Err("clientcert needs TLS: write hostssl".to_owned()),
    }
}
