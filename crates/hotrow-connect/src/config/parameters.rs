//! The parameters of libpq that a server's URL cannot have, with what to do instead: in a URL they would have no effect, because
//! many clients share the connections.

use std::time::Duration;

use hotrow_core::limits;

use super::UpstreamError;

const OPTIONS: &str = "set the settings at the server, with ALTER ROLE ... SET or ALTER DATABASE ... SET, or let the clients send options";
const NAMES: &str = "remove it: a connection has the name of the client that uses it, and the gateway's own are called hotrow";
const SILENCE: &str =
    "remove it: the gateway finds a silent server itself, after 16 s without an acknowledgement";
const FILES: &str = "write host=, port= and user= here, and the password as password= or into users_file";
const TLS: &str = "use sslmode, sslrootcert, sslcert and sslkey";
const LOGINS: &str = "use sslmode=verify-full or channel_binding=require, which an impostor cannot meet";
const KERBEROS: &str = "the gateway logs in with passwords and certificates: remove it";
const PROTOCOL: &str = "the gateway uses version 3.0 of the protocol: remove it";

/// The parameters, and what to do instead.
const REFUSED: [(&str, &str); 36] = [
    ("options", OPTIONS),
    ("client_encoding", "remove it: each client chooses its own encoding"),
    ("replication", "connect replication clients to the server itself"),
    ("application_name", NAMES),
    ("fallback_application_name", NAMES),
    ("keepalives", SILENCE),
    ("keepalives_idle", SILENCE),
    ("keepalives_interval", SILENCE),
    ("keepalives_count", SILENCE),
    ("keepalives_retries", SILENCE),
    ("tcp_user_timeout", SILENCE),
    ("service", FILES),
    ("servicefile", FILES),
    ("passfile", FILES),
    ("require_auth", LOGINS),
    ("requirepeer", LOGINS),
    ("scram_client_key", "use users_file for verifiers"),
    ("scram_server_key", "use users_file for verifiers"),
    ("sslcompression", TLS),
    ("sslpassword", TLS),
    ("sslcertmode", TLS),
    ("sslcrl", TLS),
    ("sslcrldir", TLS),
    ("sslsni", TLS),
    ("sslkeylogfile", TLS),
    ("ssl_min_protocol_version", TLS),
    ("ssl_max_protocol_version", TLS),
    ("gssencmode", KERBEROS),
    ("gssdelegation", KERBEROS),
    ("gsslib", KERBEROS),
    ("krbsrvname", KERBEROS),
    ("oauth_issuer", KERBEROS),
    ("oauth_client_id", KERBEROS),
    ("oauth_client_secret", KERBEROS),
    ("min_protocol_version", PROTOCOL),
    ("max_protocol_version", PROTOCOL),
];

/// Values that ask for what the gateway does anyway.
const HARMLESS: [(&str, &str); 7] = [
    ("keepalives", "1"),
    ("replication", "false"),
    ("sslcompression", "0"),
    ("sslcertmode", "allow"),
    ("sslsni", "1"),
    ("gssencmode", "disable"),
    ("gssencmode", "prefer"),
];

/// The limit of an attempt to connect.
pub const CONNECT_TIMEOUT: &str = "connect_timeout";

/// The names of all these parameters.
pub fn names() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().map(|(name, _)| *name)
}

/// Refuses parameters that would have no effect.
pub fn check(found: &[(String, String)]) -> Result<(), UpstreamError> {
    for (name, value) in found.iter().filter(|(_, value)| !value.is_empty()) {
        if HARMLESS.contains(&(name, value)) {
            continue;
        }
        if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| refused == name) {
            return Err(UpstreamError::Parameter { name: name.clone(), instead });
        }
    }
    Ok(())
}

/// The limit of an attempt to connect: the parameter in seconds, or the default.
pub fn connect_timeout(found: &[(String, String)]) -> Result<Duration, UpstreamError> {
    match found.iter().rfind(|(name, _)| name == CONNECT_TIMEOUT) {
        None => Ok(Duration::from_millis(limits::CONNECT_TIMEOUT_MS)),
        Some((_, value)) => match value.trim().parse() {
            Ok(seconds @ 1..=limits::CONNECT_TIMEOUT_SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
            _ => Err(UpstreamError::ConnectTimeout(value.clone())),
        },
    }
}
