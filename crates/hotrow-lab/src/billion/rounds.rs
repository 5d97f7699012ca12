//! A run of rounds, for each kind of run: it goes on where the folder's totals end.

use super::folder::RunFolder;
use super::observer::Observer;
use super::plan::Goal;
use super::round::{self, Bounds, Stop};
use super::testbed::Testbed;
use super::totals::Totals;
use hotrow_bench::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

/// What a run is to do.
#[derive(Debug)]
pub struct Rounds<'a> {
    pub folder: &'a RunFolder,
    pub goal: Goal,
    /// Ends this start after that time.
    pub seconds: Option<u64>,
    pub round_seconds: u64,
    pub clients: u32,
    /// By default `hotrow` beside this program.
    pub gateway_program: Option<PathBuf>,
    /// Whether the schema changes beside the load.
    pub changes: bool,
}

impl Rounds<'_> {
    /// Runs and checks rounds until the goal or a bound is reached, or until a signal. Returns the totals, and the first
    /// contradiction with the place of its evidence. Blocks, and must be called outside of an asynchronous runtime.
    pub fn run(&self, observer: &mut impl Observer) -> Result<(Totals, Option<String>), Error> {
        let program = match self.gateway_program.clone() {
            Some(program) => program,
            None => {
                std::env::current_exe().map_err(Error::system("name this program"))?.with_file_name("hotrow")
            }
        };
        if !program.exists() {
            return Err(Error::NoGatewayProgram { program });
        }
        let mut totals = self.folder.totals()?.unwrap_or_else(|| Totals::new(self.goal, today()));
        totals.goal = self.goal;
        if let Some(fault) = &totals.fault {
            let fault = format!(
                "{fault}\nThis run has stopped there. Keep its folder, and begin another run with --folder."
            );
            return Ok((totals, Some(fault)));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::system("start a runtime"))?;
        let ran = self.until_signal(&program, &mut totals, observer);
        let fault = runtime.block_on(LocalSet::new().run_until(ran))?;
        Ok((totals, fault))
    }

    /// Runs rounds until the end or a signal. A round that a signal interrupts does not count.
    async fn until_signal(
        &self,
        program: &Path,
        totals: &mut Totals,
        observer: &mut impl Observer,
    ) -> Result<Option<String>, Error> {
        let listen = |kind| signal(kind).map_err(Error::system("listen for signals"));
        let (mut interrupt, mut terminate) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        tokio::select! {
            ran = self.until_end(program, totals, observer) => ran,
            _ = interrupt.recv() => Ok(None),
            _ = terminate.recv() => Ok(None),
        }
    }

    /// Runs and checks rounds. Returns the first contradiction.
    async fn until_end(
        &self,
        program: &Path,
        totals: &mut Totals,
        observer: &mut impl Observer,
    ) -> Result<Option<String>, Error> {
        let deadline = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let lasts = Duration::from_secs(self.round_seconds);
        let bounds = Bounds { clients: self.clients, lasts, deadline, changes: self.changes };
        let mut testbed = Testbed::start(self.folder.path(), program).await?;
        totals.starts += 1;
        observer.begun(&testbed, totals);
        while !totals.is_done() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            match round::run(&mut testbed, totals, bounds, observer).await {
                Ok((happened, found)) => {
                    totals.add(&happened, &found);
                    self.folder.keep(totals)?;
                    observer.ended(&testbed, totals).await?;
                }
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Fault(fault, records)) => {
                    totals.fault = Some(fault.clone());
                    let evidence = self.folder.keep_evidence(&fault, &testbed.logs(), &records)?;
                    self.folder.keep(totals)?;
                    observer.ended(&testbed, totals).await?;
                    testbed.stop().await?;
                    return Ok(Some(format!("{fault}\nThe evidence is in {}.", evidence.display())));
                }
            }
        }
        testbed.stop().await?;
        Ok(None)
    }
}

/// The day, such as 2026-01-31.
pub fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.chars().take("2026-01-31".len()).collect()
}
