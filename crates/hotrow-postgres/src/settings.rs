//! The settings of a private server, and their file format. They are durable by default, because a figure without
//! fsync has no value.
use crate::Error;
use std::path::Path;

/// The defaults of all private servers. Settings of the builder follow them and take precedence.
const DEFAULTS: [(&str, &str); 11] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    // The benchmark compares with a large number of direct clients, not with the number that a pooler allows.
    ("max_connections", "1000"),
    ("shared_buffers", "256MB"),
    // No checkpoint occurs in a short run, where it would distort a comparison.
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "30min"),
    ("listen_addresses", "127.0.0.1"),
    ("logging_collector", "off"),
    ("log_destination", "stderr"),
    ("log_line_prefix", "%m [%p] "),
];

/// After a kill, a server would otherwise open and flush each of its files, one by one, before it recovers. A cluster of
/// Citus in which servers are killed all the time spent more than half of its CPU time on that.
const LINUX_DEFAULTS: [(&str, &str); 1] = [("recovery_init_sync_method", "syncfs")];

/// Settings that must be on for a durable server.
pub(crate) const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// Settings that only this crate decides: the server trusts every client that reaches it, and its folder must stay
/// private.
const RESERVED: [&str; 10] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "logging_collector",
    "log_destination",
    "port",
    "unix_socket_directories",
];

/// The lines to add to `postgresql.conf`, where the last line for a setting counts.
pub(crate) fn lines(chosen: &[(String, String)], socket: &Path) -> Result<String, Error> {
    let mut lines = String::from("\n# Hotrow's defaults, then what was asked for.\n");
    let linux = LINUX_DEFAULTS.into_iter().filter(|_| cfg!(target_os = "linux"));
    for (name, value) in DEFAULTS.into_iter().chain(linux) {
        lines.push_str(&line(name, value));
    }
    Ok(lines + &changes(chosen, socket)?)
}

/// The lines that a copy of a server adds to those of the original.
pub(crate) fn changes(chosen: &[(String, String)], socket: &Path) -> Result<String, Error> {
    let socket = format!("\"{}\"", socket.display().to_string().replace('"', "\"\""));
    let mut lines = line("unix_socket_directories", &socket);
    for (name, value) in chosen {
        check(name, value).map_err(|reason| Error::Setting { name: name.clone(), reason })?;
        lines.push_str(&line(name, value));
    }
    Ok(lines)
}

fn line(name: &str, value: &str) -> String {
    format!("{name} = {}\n", quoted(value))
}

fn check(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
        return Err("a name can have only letters, digits, underscores and dots");
    }
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err("the private server determines this setting");
    }
    if value.contains(['\n', '\r', '\0']) {
        return Err("a value must be on one line");
    }
    Ok(())
}

/// A string for `postgresql.conf`: backslashes are escaped, and quotes are doubled.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<String, Error> {
        lines(&[(name.to_owned(), value.to_owned())], Path::new("/run/it's"))
    }

    #[test]
    fn settings_of_the_builder_come_last_and_are_quoted() {
        let lines = with("my.motto", r"it's a \n").unwrap();
        assert!(lines.ends_with("my.motto = 'it''s a \\\\n'\n"), "{lines}");
        assert!(lines.contains("unix_socket_directories = '\"/run/it''s\"'\n"), "{lines}");
        assert!(lines.contains("fsync = 'on'\n"), "{lines}");
    }

    #[test]
    fn settings_that_would_expose_or_lose_the_server_are_rejected() {
        for (name, value) in
            [("LISTEN_addresses", "*"), ("port", "5432"), ("", "x"), ("a b", "x"), ("a", "x\nfsync = off")]
        {
            assert!(matches!(with(name, value), Err(Error::Setting { .. })), "{name} = {value} was accepted");
        }
    }
}
