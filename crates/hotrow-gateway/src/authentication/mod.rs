//! Which clients can connect: the access file and the users in force. `hotrow-auth` decides about rules and proofs.

pub mod client;
mod query;

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use hotrow_auth::{Account, Hba, HbaError, ProcessKey, Secret, Users, UsersError};
use hotrow_connect::lock::Lock;
use hotrow_connect::upstream;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::config::routes::Server;
use crate::config::{Config, Listen};
use query::AuthQuery;

/// Everything that logins need.
#[derive(Debug)]
pub struct Authentication {
    lists: ArcSwap<Lists>,
    /// By the server's number.
    queries: Lock<HashMap<u64, Arc<AuthQuery>>>,
    key: ProcessKey,
    /// Limits the number of passwords hashed at once. Clients that guess passwords then cannot use up the processors.
    hashing: Semaphore,
}

/// The contents of the access file and of users_file.
#[derive(Debug)]
pub struct Lists {
    hba: Hba,
    accounts: HashMap<String, Arc<Account>>,
}

/// Why the authentication settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {setting} {}: {error}", path.display())]
    Read {
        /// The setting that names it.
        setting: &'static str,
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file is too large to be the right one.
    #[error("{setting} {} has more than {} bytes: is it the right file?", path.display(), hotrow_auth::limits::AUTH_FILE_BYTES_MAX)]
    TooLarge {
        /// The setting that names it.
        setting: &'static str,
        path: PathBuf,
    },
    /// The access file is wrong.
    #[error("hba_file {}: {error}", path.display())]
    Hba {
        path: PathBuf,
        /// The line and its error.
        error: HbaError,
    },
    /// users_file is wrong.
    #[error("users_file {}: {error}", path.display())]
    Users {
        path: PathBuf,
        /// The line and its error.
        error: UsersError,
    },
    /// Every client could connect.
    #[error(
        "{0} can be reached from other machines, and there is no access file: set hba_file, or listen on 127.0.0.1, [::1] or a Unix socket"
    )]
    NoList(SocketAddr),
    /// Every client could connect, or passwords could be read.
    #[error(
        "hba_file {}: line {line} admits clients from other machines by {method}, and {address} can be reached from them: use scram-sha-256, limit the line to 127.0.0.1/32 and ::1/128, or listen on these addresses only",
        path.display()
    )]
    Insecure {
        path: PathBuf,
        line: usize,
        /// The line's method.
        method: hotrow_auth::Method,
        /// The address that other machines can reach.
        address: SocketAddr,
    },
    /// No random key.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

impl Authentication {
    /// Reads the files that the configuration names. Hashes every plain password in them.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let key = ProcessKey::new(random);
        let lists = Lists::read(config, &key, &HashMap::new())?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Authentication {
            lists: ArcSwap::from_pointee(lists),
            queries: Lock::default(),
            key,
            hashing: Semaphore::new(cores),
        })
    }

    /// Reads the files again for [`replace`](Self::replace). Hashes every new plain password: call it on a blocking
    /// thread.
    pub fn read(&self, config: &Config) -> Result<Lists, Error> {
        Lists::read(config, &self.key, &self.lists.load().accounts)
    }

    /// Puts files in force that were read again. The servers are asked again for all secrets.
    pub fn replace(&self, lists: Lists) {
        self.lists.store(Arc::new(lists));
        self.queries.lock().clear();
    }

    /// The account of a user: from users_file, else from the server.
    async fn account(
        &self,
        config: &Config,
        server: &Server,
        user: &str,
    ) -> Result<Option<Arc<Account>>, upstream::Error> {
        if let Some(account) = self.lists.load().accounts.get(user) {
            return Ok(Some(account.clone()));
        }
        self.query(server).account(config, &server.upstream, &self.key, user).await
    }

    /// The secrets of a server. Users of one name can have other secrets at another server.
    fn query(&self, server: &Server) -> Arc<AuthQuery> {
        self.queries.lock().entry(server.id).or_default().clone()
    }

    /// Closes connections for auth_query that have been unused for this long.
    pub fn close_unused(&self, age: std::time::Duration) {
        let queries: Vec<_> = self.queries.lock().values().cloned().collect();
        queries.iter().for_each(|query| query.close_unused(age));
    }
}

impl Lists {
    /// Accounts in `before` with the same password are not hashed again.
    fn read(
        config: &Config,
        key: &ProcessKey,
        before: &HashMap<String, Arc<Account>>,
    ) -> Result<Self, Error> {
        let hba = match &config.hba_file {
            Some(path) => Hba::parse(&text("hba_file", path)?)
                .map_err(|error| Error::Hba { path: path.clone(), error })?,
            None => Hba::built_in(),
        };
        let mut reachable = config.listen.iter().filter_map(|listen| match listen {
            Listen::Tcp(address) if !address.ip().is_loopback() => Some(*address),
            _ => None,
        });
        if let Some(address) = reachable.next() {
            let path = config.hba_file.clone().ok_or(Error::NoList(address))?;
            if let Some(rule) = hba.insecure() {
                return Err(Error::Insecure { path, line: rule.line, method: rule.method, address });
            }
        }
        let users = match &config.users_file {
            Some(path) => Users::parse(&text("users_file", path)?)
                .map_err(|error| Error::Users { path: path.clone(), error })?,
            None => Users::default(),
        };
        let account = |(user, secret): (String, Secret)| {
            let known = before.get(&user).filter(|account| *account.secret() == secret).cloned();
            let account = known.unwrap_or_else(|| Arc::new(Account::new(&user, secret, key)));
            (user, account)
        };
        Ok(Lists { hba, accounts: users.into_secrets().map(account).collect() })
    }
}

fn text(setting: &'static str, path: &Path) -> Result<Zeroizing<String>, Error> {
    let failed = |error| Error::Read { setting, path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(failed)?;
    if setting == "users_file" && file.metadata().map_err(failed)?.permissions().mode() & 0o007 != 0 {
        tracing::warn!(path = %path.display(), "users_file can be read by every user of this machine; run chmod 640");
    }
    let mut text = Zeroizing::new(String::new());
    let length =
        file.take(hotrow_auth::limits::AUTH_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > hotrow_auth::limits::AUTH_FILE_BYTES_MAX {
        return Err(Error::TooLarge { setting, path: path.to_owned() });
    }
    Ok(text)
}
