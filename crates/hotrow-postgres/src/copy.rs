//! Copies of a private server: a standby, which follows it by streaming replication and can be promoted, and an independent
//! copy. Copying needs only the server's own program, so the server must be stopped meanwhile.
use crate::account::Account;
use crate::folder::Folder;
use crate::port::ReservedPort;
use crate::{Error, PrivateServer, new_cluster, settings};
use std::fs::File;
use std::sync::Mutex;

impl PrivateServer {
    /// Starts a standby of this server, which is stopped while its folder is copied. Replication is asynchronous, unless this
    /// server's settings name the standby `standby`.
    pub fn standby(&self) -> Result<PrivateServer, Error> {
        self.stop()?;
        let follows = format!("host=127.0.0.1 port={} user=postgres application_name=standby", self.port());
        let mut standby = self.copy("standby", &[("primary_conninfo".to_owned(), follows)])?;
        let signal = standby.data_dir().join("standby.signal");
        File::create(&signal).map_err(Error::folder(&signal, "created"))?;
        self.restart()?;
        standby.find_port()?;
        Ok(standby)
    }

    /// Promotes this standby to a primary. Returns when it accepts writes.
    pub fn promote(&self) -> Result<(), Error> {
        self.query("select pg_promote(true, 60)").map(drop)
    }

    /// A copy of this server, which is stopped, with more settings. The copy is not started, and has the same system identifier.
    pub(crate) fn copy(&self, label: &str, more: &[(String, String)]) -> Result<PrivateServer, Error> {
        let account = Account::choose()?;
        let folder = Folder::create(None, label, &account)?;
        new_cluster::copy(&self.data_dir(), &folder.data(), &account)?;
        let copy = PrivateServer {
            folder,
            binaries: self.binaries().clone(),
            account,
            environment: self.environment.clone(),
            port: ReservedPort::find(),
            running: Mutex::new(None),
            must_be_on: self.must_be_on.clone(),
        };
        copy.configure(&settings::changes(more, &copy.folder.socket())?)?;
        Ok(copy)
    }
}
