//! A framework's program: the forms of its update, its runs, and the check of its row.

use std::convert::Infallible;
use std::future::Future;

use hotrow_testkit::{config, connect, value};
use serde::Deserialize;

use crate::program::Program;

/// A framework.
pub struct Framework {
    /// Its program. The name is that of the framework and of its database.
    pub program: Program,
    /// The table that the program creates, as SQL names it.
    pub table: &'static str,
    /// Whether it wraps a single statement in a transaction by default.
    pub wraps: bool,
}

/// A row of the table of frameworks.
pub const fn framework(
    name: &'static str,
    folder: &'static str,
    command: &'static [&'static str],
    table: &'static str,
) -> Framework {
    Framework { program: Program { name, folders: ["frameworks", folder], command }, table, wraps: false }
}

/// How the update is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// One statement that commits on its own.
    Autocommit,
    /// The same statement in the transaction that the framework opens for it by default.
    Wrapped,
    /// A transaction that reads the row with a lock, changes it and writes it, with a round trip for each statement.
    Transaction,
}

impl Variant {
    /// Its name as an argument and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Autocommit => "autocommit",
            Variant::Wrapped => "wrapped",
            Variant::Transaction => "transaction",
        }
    }
}

/// What a program prints.
#[derive(Deserialize)]
struct Printed {
    updates: u64,
    per_second: f64,
}

/// One run of a program under load.
pub struct Run<'f> {
    /// The framework.
    pub framework: &'f Framework,
    /// The form of its update.
    pub variant: Variant,
    /// The server's port.
    pub server: u16,
    /// Concurrent workers.
    pub workers: usize,
    /// Measured seconds.
    pub seconds: usize,
}

impl Run<'_> {
    /// Runs the program against a port while `watching` is polled. Checks that the row contains each acknowledged
    /// update once, and returns the updates per second.
    pub async fn checked(&self, port: u16, watching: impl Future<Output = Infallible>) -> f64 {
        let program = &self.framework.program;
        let before = self.framework.sold(self.server).await;
        let arguments = [self.workers.to_string(), self.seconds.to_string()];
        let output = program.run_watched(self.variant.name(), port, program.name, &arguments, watching).await;
        let printed: Printed = program.result(&output);
        let sold = self.framework.sold(self.server).await - before;
        assert_eq!(sold, printed.updates, "{}: the row and the acknowledged updates", program.name);
        printed.per_second
    }
}

impl Framework {
    /// The same for a framework that wraps a single statement in a transaction by default.
    pub const fn wrapping(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// The forms of its update.
    pub fn variants(&self) -> impl Iterator<Item = Variant> {
        let all = [Variant::Autocommit, Variant::Wrapped, Variant::Transaction];
        all.into_iter().filter(|variant| self.wraps || *variant != Variant::Wrapped)
    }

    /// Creates the table with one row.
    pub async fn set_up(&self, port: u16) {
        self.program.run("setup", port, self.program.name, &[]).await;
    }

    /// The row's value on the server with this port.
    async fn sold(&self, server: u16) -> u64 {
        let mut config = config(server);
        let direct = connect(config.dbname(self.program.name)).await;
        value(&direct, &format!("select sold from {} where id = 1", self.table)).await.parse().unwrap()
    }
}
