//! Two applications that batch the commands of their own callers in fixed windows, as people do today without a gateway; the
//! SQL is in `sql/application/`, and nothing here knows Hotrow.
//!
//! The design is the one of "Solving High Data Contention Problems with a Typical Web Stack" (2021), written anew: an application
//! collects for a fixed window what its callers want, takes an advisory lock, carries the whole batch out in one transaction, and
//! answers. It is measured generously: callers and applications share a process, so that no caller pays for a wire; BEGIN travels
//! with the first statement; a batch is one insert of arrays.

mod callers;
mod command_log;
mod ledger;

use crate::endpoint::Endpoint;
use crate::load::{Answers, Failure};
use crate::scenario::Batching;
use callers::Calls;
use command_log::CommandLog;
use ledger::Ledger;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_postgres::NoTls;

/// What the applications and their callers are to do.
#[derive(Debug)]
pub struct Load<'a> {
    /// The server.
    pub endpoint: &'a Endpoint,
    /// How the applications work.
    pub batching: Batching,
    /// The counter that everybody wants.
    pub counter: &'a str,
    /// How many callers, half of them at each application.
    pub callers: u32,
    /// How long.
    pub seconds: u32,
    /// Commands a second, unless each caller sends its next one when it has its answer.
    pub rate: Option<u32>,
    /// Whether callers only increment by one, and check that each answer is the number of commands so far.
    pub checked: bool,
}

/// One caller's command.
#[derive(Debug)]
struct Command {
    transaction_id: String,
    drain: bool,
    amount: i64,
    answer: oneshot::Sender<Answer>,
}

impl Command {
    fn name(&self) -> &'static str {
        if self.drain { DRAIN } else { "increment" }
    }
}

const DRAIN: &str = "drain";

/// What a caller hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    version: i64,
    returned: i64,
}

/// A counter at one moment; how a command changes it is the same in both designs.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    version: i64,
    value: i64,
}

impl State {
    fn apply(&mut self, drain: bool, amount: i64) -> Answer {
        let before = self.value;
        self.version += 1;
        self.value = if drain { 0 } else { before + amount };
        Answer { version: self.version, returned: if drain { before } else { self.value } }
    }
}

/// Whoever holds it carries a batch out alone; the article's own number.
const LOCK: i64 = 898_874_326_372_568;
const APPLICATIONS: usize = 2;

/// Runs a load to its end. What goes wrong is a failure of this run only.
pub async fn run(load: &Load<'_>) -> Result<Answers, Failure> {
    let mut queues = Vec::new();
    let mut applications = Vec::new();
    for _ in 0..APPLICATIONS {
        let (sender, receiver) = unbounded_channel();
        let keeper = Keeper::start(load).await.map_err(failure)?;
        queues.push(sender);
        applications.push(tokio::spawn(application(keeper, window(load.batching), receiver)));
    }
    let answers = callers::run(&Calls::of(load), queues).await;
    for application in applications {
        match application.await {
            Ok(ended) => ended.map_err(failure)?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
    answers
}

/// The article's windows.
fn window(batching: Batching) -> Duration {
    match batching {
        Batching::Ledger => Duration::from_millis(5),
        Batching::CommandLog => Duration::from_millis(10),
    }
}

/// One application's thread: a window, a batch, the answers; ends when its callers have gone.
async fn application(
    mut keeper: Keeper,
    window: Duration,
    mut queue: UnboundedReceiver<Command>,
) -> Result<(), tokio_postgres::Error> {
    loop {
        // The runtime's own timer rounds up to a millisecond, which would make the windows up to a fifth longer.
        let slept = tokio::task::spawn_blocking(move || std::thread::sleep(window)).await;
        slept.expect("sleeping does not panic");
        let mut batch = Vec::new();
        while let Ok(command) = queue.try_recv() {
            batch.push(command);
        }
        if batch.is_empty() {
            match queue.recv().await {
                Some(command) => batch.push(command),
                None => return Ok(()),
            }
        }
        let answers = keeper.carry_out(&batch).await?;
        for (command, answer) in batch.into_iter().zip(answers) {
            // A caller that has given up needs no answer.
            let _ = command.answer.send(answer);
        }
    }
}

/// How an application keeps the counter.
enum Keeper {
    Ledger(Ledger),
    CommandLog(CommandLog),
}

impl Keeper {
    async fn start(load: &Load<'_>) -> Result<Self, tokio_postgres::Error> {
        let (client, connection) = load.endpoint.config().connect(NoTls).await?;
        // Its end shows up as an error of the next statement.
        tokio::spawn(connection);
        Ok(match load.batching {
            Batching::Ledger => Self::Ledger(Ledger::start(client, load.counter).await?),
            Batching::CommandLog => Self::CommandLog(CommandLog::start(client, load.counter).await?),
        })
    }

    async fn carry_out(&mut self, batch: &[Command]) -> Result<Vec<Answer>, tokio_postgres::Error> {
        match self {
            Self::Ledger(ledger) => ledger.carry_out(batch).await,
            Self::CommandLog(log) => log.carry_out(batch).await,
        }
    }
}

/// The queues' type, for the callers.
type Queue = UnboundedSender<Command>;

fn failure(error: tokio_postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(said) => Failure(format!("an application's statement failed: {said}")),
        None => Failure(format!("an application lost its connection: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, State};

    #[test]
    fn the_articles_example_gives_the_articles_answers() {
        let mut state = State::default();
        let commands = [(false, 2), (false, 7), (true, 0), (false, 3)];
        let answers = commands.map(|(drain, amount)| state.apply(drain, amount));
        let expected =
            [(1, 2), (2, 9), (3, 9), (4, 3)].map(|(version, returned)| Answer { version, returned });
        assert_eq!(answers, expected);
    }
}
