//! The properties of a private server. Nothing happens before `start`.
use crate::account::Account;
use crate::folder::Folder;
use crate::port::ReservedPort;
use crate::server::PrivateServer;
use crate::{Binaries, Error, new_cluster, settings};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

/// Collects the properties of a private server and starts it. [`PrivateServer::builder`] makes one.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    pub(crate) binaries: Option<Binaries>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) label: Option<String>,
    pub(crate) parent: Option<PathBuf>,
    pub(crate) own_identifier: bool,
    pub(crate) keep: Option<PathBuf>,
}

impl Builder {
    /// Uses these binaries instead of those that [`Binaries::find`] finds.
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Changes a setting of the server. The defaults are durable. A caller that wants less durability must set it
    /// here explicitly.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Sets an environment variable of the server, of its later starts, and of its standbys.
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A part of the folder's name that shows the folder's purpose.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Creates the server's folder in this folder, for example on the disk to measure. The folder must exist. If
    /// this program runs as root, the server's account must be able to pass through it.
    pub fn parent(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Gives the cluster a system identifier of its own. Other private servers are copies of one new cluster and have the same
    /// identifier, like a server and its standby.
    pub fn own_identifier(mut self) -> Self {
        self.own_identifier = true;
        self
    }

    /// Uses this folder, and keeps it after the server's end. If it has the files of an earlier server, this server continues with
    /// them and with the settings from then. Processes that the earlier owner has left there are ended first.
    pub fn keep(mut self, folder: impl Into<PathBuf>) -> Self {
        self.keep = Some(folder.into());
        self
    }

    /// Creates the cluster, starts the server, and returns when it answers.
    pub fn start(self) -> Result<PrivateServer, Error> {
        PrivateServer::start(self)
    }

    /// The label as a part of a file name. It is short, because the path of a socket must be short.
    pub(crate) fn folder_label(&self) -> String {
        let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        self.label.as_deref().unwrap_or("server").chars().take(16).map(kept).collect()
    }

    /// Whether the caller has set this setting.
    pub(crate) fn chooses(&self, name: &str) -> bool {
        self.settings.iter().any(|(chosen, _)| chosen.eq_ignore_ascii_case(name))
    }
}

impl PrivateServer {
    /// A builder for a server. Its `start` starts the server.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn start(builder: Builder) -> Result<PrivateServer, Error> {
        let label = builder.folder_label();
        let must_be_on = settings::DURABLE.into_iter().filter(|name| !builder.chooses(name)).collect();
        let binaries = builder.binaries.map_or_else(Binaries::find, Ok)?;
        let account = Account::choose()?;
        let folder = match &builder.keep {
            Some(path) => Folder::keep(path, &account)?,
            None => Folder::create(builder.parent.as_deref(), &label, &account)?,
        };
        let lines = settings::lines(&builder.settings, &folder.socket())?;
        let is_new = !folder.is_filled();
        if is_new {
            new_cluster::fill(&folder, &binaries, &account, builder.own_identifier)?;
        }

        let (running, environment) = (Mutex::new(None), builder.environment);
        let port = ReservedPort::find();
        let mut server = PrivateServer { folder, binaries, account, environment, port, running, must_be_on };
        if is_new {
            server.configure(&lines)?;
            server.folder.set_filled()?;
        }
        server.find_port()?;
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_contain_a_path() {
        assert_eq!(Builder::default().label("../Über/x").folder_label(), "----ber-x");
        assert_eq!(Builder::default().label("a".repeat(40)).folder_label().len(), 16);
        assert_eq!(Builder::default().folder_label(), "server");
    }
}
