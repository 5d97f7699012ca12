//! What another crate implements whose techniques have loads that this crate does not make. It starts nothing itself.

use super::Testbed;
use crate::child::Child;
use crate::error::Error;
use crate::load::{Answers, Failure, NoFigure, Part, Run};
use crate::scenario::{Protocol, Technique};
use crate::verdict::Reading;
use crate::watch::Counted;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

/// A future of the benchmark, which has one thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The loads of another crate.
pub trait OtherLoads: Debug {
    /// The programs that it has found, with their versions, for the report.
    fn tools(&self) -> Vec<String>;

    /// Whether a technique can be run with this number of clients. The error is the reason.
    fn can_run(&self, testbed: &Testbed, technique: &Technique, clients: u32) -> Result<(), Failure>;

    /// The protocol that a technique's clients can use.
    fn protocol(&self, technique: &Technique) -> Protocol;

    /// A remark for the report about a technique on this machine.
    fn remark(&self, technique: &Technique) -> Option<String>;

    /// Starts the programs that a run needs. Its rows are restored.
    fn start<'a>(&'a self, testbed: &'a Testbed, run: Run)
    -> Later<'a, Result<Box<dyn OtherLoad>, NoFigure>>;
}

/// The programs of a run. Dropping them ends them.
pub trait OtherLoad: Debug {
    /// Prepares a part, before the rows are read.
    fn prepare<'a>(&'a mut self, testbed: &'a Testbed, part: &'a Part) -> Later<'a, Result<(), Failure>>;

    /// Makes the load of a part.
    fn run<'a>(&'a mut self, testbed: &'a Testbed, part: &'a Part) -> Later<'a, Result<Answers, NoFigure>>;

    /// Waits until the rows show all the work, before they are read again.
    fn settle(&self) -> Later<'_, Result<(), NoFigure>>;

    /// The current state, if it is not in the scenario's rows.
    fn read(&self) -> Option<Later<'_, Result<Reading, Error>>>;

    /// The work of its own server so far, if it has one.
    fn counted(&self) -> Option<Later<'_, Result<Counted, Error>>>;

    /// Its programs.
    fn children(&mut self) -> Vec<&mut Child>;

    /// Stops its programs.
    fn stop(self: Box<Self>) -> Later<'static, Result<(), Error>>;
}
