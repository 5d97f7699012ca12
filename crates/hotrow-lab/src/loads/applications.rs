//! Load by two applications that batch the commands of their own callers in fixed windows, as applications do without a
//! gateway. The SQL is in `sql/application/`. Nothing here depends on Hotrow.
//!
//! The design is that of "Solving High Data Contention Problems with a Typical Web Stack" (2021), written again: an
//! application collects the commands of its callers for a fixed window, takes an advisory lock, executes the batch in one
//! transaction, and answers. The measurement is generous: callers and applications share a process, so no caller pays for a
//! network connection. BEGIN is sent with the first statement. A batch is one insert of arrays.

mod callers;
mod command_log;
mod ledger;

use super::Batching;
use command_log::CommandLog;
use hotrow_bench::endpoint::Endpoint;
use hotrow_bench::load::{Answers, Failure, Part, joined};
use ledger::Ledger;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_postgres::Error;

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

/// The answer to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    version: i64,
    returned: i64,
}

/// The state of a counter. Both designs apply a command in the same way.
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

/// The advisory lock for a batch, with the number of the article.
const LOCK: i64 = 898_874_326_372_568;
const APPLICATIONS: usize = 2;

/// Runs a load to its end: each application has half of the clients as its callers. The warm-up has increments by one only,
/// and checks that each answer is the number of commands so far.
pub async fn run(endpoint: &Endpoint, batching: Batching, part: &Part) -> Result<Answers, Failure> {
    let mut queues = Vec::new();
    let mut applications = Vec::new();
    for _ in 0..APPLICATIONS {
        let (sender, receiver) = unbounded_channel();
        let store =
            CounterStore::start(endpoint, batching, &part.number.to_string()).await.map_err(failure)?;
        queues.push(sender);
        applications.push(tokio::spawn(application(store, window(batching), receiver)));
    }
    let answers = callers::run(part, queues).await;
    for application in applications {
        joined(application.await).map_err(failure)?;
    }
    answers
}

/// The windows of the article.
fn window(batching: Batching) -> Duration {
    match batching {
        Batching::Ledger => Duration::from_millis(5),
        Batching::CommandLog => Duration::from_millis(10),
    }
}

/// The task of one application: a window, a batch, the answers. It ends after all its callers have ended.
async fn application(
    mut store: CounterStore,
    window: Duration,
    mut queue: UnboundedReceiver<Command>,
) -> Result<(), Error> {
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
        let answers = store.run(&batch).await?;
        for (command, answer) in batch.into_iter().zip(answers) {
            // A caller that has given up needs no answer.
            let _ = command.answer.send(answer);
        }
    }
}

/// The way in which an application stores the counter.
enum CounterStore {
    Ledger(Ledger),
    CommandLog(CommandLog),
}

impl CounterStore {
    async fn start(endpoint: &Endpoint, batching: Batching, counter: &str) -> Result<Self, Error> {
        let client = endpoint.client().await?;
        Ok(match batching {
            Batching::Ledger => Self::Ledger(Ledger::start(client, counter).await?),
            Batching::CommandLog => Self::CommandLog(CommandLog::start(client, counter).await?),
        })
    }

    async fn run(&mut self, batch: &[Command]) -> Result<Vec<Answer>, Error> {
        match self {
            Self::Ledger(ledger) => ledger.run(batch).await,
            Self::CommandLog(log) => log.run(batch).await,
        }
    }
}

/// The sender of a queue, for the callers.
type Queue = UnboundedSender<Command>;

fn failure(error: Error) -> Failure {
    match error.as_db_error() {
        Some(reported) => Failure(format!("an application's statement failed: {reported}")),
        None => Failure(format!("an application lost its connection: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, State};

    #[test]
    fn the_example_of_the_article_has_its_answers() {
        let mut state = State::default();
        let commands = [(false, 2), (false, 7), (true, 0), (false, 3)];
        let answers = commands.map(|(drain, amount)| state.apply(drain, amount));
        let expected =
            [(1, 2), (2, 9), (3, 9), (4, 3)].map(|(version, returned)| Answer { version, returned });
        assert_eq!(answers, expected);
    }
}
