//! Runs PgBouncer with transaction pooling for comparison: finds it, configures it in a private folder, starts and stops it.

use hotrow_bench::child::Child;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::error::Error;
use hotrow_bench::files::{temporary_folder, write_private};
use hotrow_bench::scenario::Protocol;
use std::path::PathBuf;
use tokio::process::Command;

/// PgBouncer on this machine.
#[derive(Debug, Clone)]
pub struct Installed {
    program: PathBuf,
    /// The version that it prints.
    pub version: String,
    keeps_prepared_statements: bool,
}

impl Installed {
    /// Looks for PgBouncer. `None` if there is none that runs.
    pub fn find() -> Option<Self> {
        let program = hotrow_bench::programs::find("pgbouncer", None)?;
        let output = std::process::Command::new(&program).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
        let keeps_prepared_statements = version_number(&version)? >= (1, 21);
        Some(Self { program, version, keeps_prepared_statements })
    }

    /// The protocol that this version supports. Before 1.21, prepared statements do not work with transaction pooling.
    pub fn protocol(&self, wanted: Protocol) -> Protocol {
        if self.keeps_prepared_statements { wanted } else { Protocol::Extended }
    }
}

/// A PgBouncer that this benchmark started.
#[derive(Debug)]
pub struct PgBouncer {
    /// The process.
    pub child: Child,
    /// The address for its clients.
    pub endpoint: Endpoint,
}

impl PgBouncer {
    /// Starts PgBouncer in front of a server, on a free port, with this number of connections to the server.
    pub async fn start(installed: &Installed, upstream: &Endpoint, pool: u32) -> Result<Self, Error> {
        let folder = temporary_folder()?;
        let port = hotrow_postgres::free_port();
        let ini = folder.path().join("pgbouncer.ini");
        write_private(&ini, &configuration(port, upstream, pool, installed.keeps_prepared_statements))?;
        let mut command = Command::new(&installed.program);
        command.arg(&ini);
        if nix::unistd::geteuid().is_root() {
            // PgBouncer refuses to run as root. It reads the file before it changes its user.
            command.args(["-u", "nobody"]);
        }
        let mut child = Child::start_with(&installed.program, command, folder)?;
        child.ready(|line| line.contains("process up").then_some(())).await?;
        Ok(Self { child, endpoint: upstream.at("127.0.0.1", port) })
    }
}

fn configuration(port: u16, upstream: &Endpoint, pool: u32, keeps_prepared_statements: bool) -> String {
    let database = upstream.pgbouncer_database();
    let prepared = if keeps_prepared_statements { "max_prepared_statements = 100\n" } else { "" };
    format!(
        "[databases]\n{database}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = transaction\ndefault_pool_size = {pool}\nmax_client_conn = 2000\nlog_connections = 0\n\
         log_disconnections = 0\nlog_stats = 0\nignore_startup_parameters = extra_float_digits\n{prepared}"
    )
}

fn version_number(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.rsplit(' ').next()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{configuration, version_number};
    use hotrow_bench::endpoint::Endpoint;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version_number("PgBouncer 1.18.0"), Some((1, 18)));
        assert!(version_number("PgBouncer 1.9.0") < version_number("PgBouncer 1.21.0"));
        assert_eq!(version_number("unknown"), None);
    }

    #[test]
    fn the_configuration_leads_every_database_to_the_upstream() {
        let upstream = Endpoint::parse("postgres://o'hara:it%27s@127.0.0.1:5555/shop").unwrap();
        let ini = configuration(7000, &upstream, 4, false);
        assert!(ini.contains("* = host=127.0.0.1 port=5555 user='o''hara' password='it''s'\n"), "{ini}");
        assert!(ini.contains("\ndefault_pool_size = 4\n"), "{ini}");
        assert!(!ini.contains("max_prepared_statements"));
        assert!(configuration(7000, &upstream, 20, true).contains("max_prepared_statements = 100\n"));
    }
}
