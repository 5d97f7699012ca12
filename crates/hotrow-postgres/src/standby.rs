//! A standby of a private server: a copy of its folder that follows it by streaming replication and can be
//! promoted.
use crate::account::Account;
use crate::folder::Folder;
use crate::port::ReservedPort;
use crate::{Error, PrivateServer, settings};
use std::fs::File;
use std::sync::Mutex;

impl PrivateServer {
    /// Starts a standby of this server, which is stopped while its folder is copied, so that only the server's own
    /// program is needed. Replication is asynchronous, unless this server's settings name the standby `standby`.
    pub fn standby(&self) -> Result<PrivateServer, Error> {
        self.stop()?;
        let account = Account::choose()?;
        let folder = Folder::create(None, "standby", &account)?;
        let mut standby = PrivateServer {
            folder,
            binaries: self.binaries().clone(),
            account,
            environment: self.environment.clone(),
            port: ReservedPort::find(),
            running: Mutex::new(None),
            must_be_on: self.must_be_on.clone(),
        };
        standby.copy_of(self)?;
        self.restart()?;
        standby.find_port()?;
        Ok(standby)
    }

    /// Promotes this standby to a primary. Returns when it accepts writes.
    pub fn promote(&self) -> Result<(), Error> {
        self.query("select pg_promote(true, 60)").map(drop)
    }

    fn copy_of(&self, primary: &PrivateServer) -> Result<(), Error> {
        let mut copy = self.account.command("cp".as_ref(), self.folder.path());
        copy.arg("-a").arg(primary.data_dir().join(".")).arg(self.data_dir());
        let output = copy.output().map_err(|source| self.spawn_error(&copy, source))?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Copy { output });
        }
        let signal = self.data_dir().join("standby.signal");
        File::create(&signal).map_err(Error::folder(&signal, "created"))?;
        let follows =
            format!("host=127.0.0.1 port={} user=postgres application_name=standby", primary.port());
        let follows = [("primary_conninfo".to_owned(), follows)];
        self.configure(&settings::lines(&follows, &self.folder.socket())?)
    }
}
