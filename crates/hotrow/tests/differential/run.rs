//! Runs a program at one port, step by step, and records the messages that each session receives. The direct run
//! decides how long an answer is, and the run through the gateway waits for the same amount. Never judges.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::cancel::{Key, cancelled, pause};
use crate::frames;
use crate::program::{Frame, NUMBER, Program, Step};
use hotrow_testkit::raw::{Message, Raw, startup};
use hotrow_testkit::{until, value};
use tokio_postgres::Client;

/// The port and database at which a program runs.
pub struct Target<'a> {
    pub port: u16,
    pub database: &'a str,
    /// A direct connection to the same database.
    pub direct: &'a Client,
    /// The console of the gateway, if the port is a gateway's.
    pub console: Option<&'a Client>,
}

/// How long to wait for events that no message announces.
#[derive(Clone, Copy)]
pub struct Patience {
    /// A direct session that is silent for this long has sent its whole answer.
    pub quiet: Duration,
    /// An answer that takes longer is missing.
    pub answer: Duration,
}

/// The messages that a session received for one step.
#[derive(Clone, Debug, Default)]
pub struct Received {
    pub messages: Vec<Message>,
    /// Whether the connection was closed after them.
    pub closed: bool,
    /// Whether an answer was still missing when the time was over.
    pub hangs: bool,
    pub took: Duration,
}

impl Received {
    /// The number of ReadyForQuery, and of messages after the last one that belong to an answer.
    fn extent(&self) -> (usize, usize) {
        let (mut readies, mut pending) = (0, 0);
        for message in &self.messages {
            match message.tag {
                b'Z' => (readies, pending) = (readies + 1, 0),
                b'N' | b'S' | b'A' => {}
                _ => pending += 1,
            }
        }
        (readies, pending)
    }
}

/// One session's connection, and its state as far as the sent messages determine it.
#[derive(Default)]
struct Session {
    raw: Option<Raw>,
    /// For its cancel requests.
    key: Key,
    /// An extended query was sent without a Sync, or COPY may be running: the number of ReadyForQuery is not known in
    /// advance.
    extended: bool,
    copies: bool,
    /// ReadyForQuery of steps whose answers were not waited for.
    owed: usize,
}

/// When an answer is complete.
enum Goal<'a> {
    Readies(usize),
    Quiet,
    Like(&'a Received),
}

/// Runs a program with `number` in the place of [`NUMBER`]. After the steps, reads the remaining messages of each
/// session in order. `guide` has the messages of the direct run. Ends early if `each` returns false.
pub async fn play(
    target: &Target<'_>,
    program: &Program,
    number: &str,
    guide: Option<&[Received]>,
    patience: Patience,
    mut each: impl FnMut(usize, &Received) -> bool,
) -> Vec<Received> {
    let mut sessions: BTreeMap<char, Session> = BTreeMap::new();
    let mut all = Vec::new();
    for (index, step) in program.steps.iter().enumerate() {
        let frames: Vec<Frame> = step.frames.iter().map(|frame| frame.renamed(NUMBER, number)).collect();
        let step = Step { frames, ..step.clone() };
        let session = sessions.entry(step.session).or_default();
        let received = session.step(target, &step, guide.map(|guide| &guide[index]), patience).await;
        let goes_on = each(index, &received);
        all.push(received);
        if !goes_on {
            return all;
        }
    }
    let known = program.steps.len();
    // Remaining messages, such as notifications, arrive a little later through a gateway.
    let quiet = if guide.is_some() { patience.quiet * 4 } else { patience.quiet };
    for (index, session) in sessions.values_mut().enumerate() {
        let received = match &mut session.raw {
            Some(raw) if session.copies => receive(raw, Goal::Quiet, Patience { quiet, ..patience }).await,
            _ => Received::default(),
        };
        let goes_on = each(known + index, &received);
        all.push(received);
        if !goes_on {
            return all;
        }
    }
    for session in sessions.values_mut() {
        if let Some(raw) = &mut session.raw {
            let _ = raw.try_send(&frames::bytes(&Frame::Leave, 0)).await; // the server may have closed the connection
        }
    }
    all
}

impl Session {
    async fn step(
        &mut self,
        target: &Target<'_>,
        step: &Step,
        guide: Option<&Received>,
        patience: Patience,
    ) -> Received {
        let leaves = step.frames.contains(&Frame::Leave);
        let connects = step.frames.iter().find_map(|frame| match frame {
            Frame::Connect(parameters) => Some(&parameters[..]),
            _ => None,
        });
        if leaves || connects.is_some() {
            self.leave(target, patience).await;
        }
        if leaves {
            return Received::default();
        }
        if self.raw.is_none() {
            let received = self.connect(target, connects.unwrap_or_default(), patience).await;
            if connects.is_some() || self.raw.is_none() {
                return received;
            }
        }
        if step.frames.contains(&Frame::Cancel) {
            return self.cancel(target, patience).await;
        }
        let interrupts = step.frames.iter().find(|frame| matches!(frame, Frame::Race(..) | Frame::Paused(_)));
        if let Some(interrupts) = interrupts {
            return self.interrupted(target, step, interrupts, patience).await;
        }
        self.send(target, step, guide, patience).await
    }

    async fn send(
        &mut self,
        target: &Target<'_>,
        step: &Step,
        guide: Option<&Received>,
        patience: Patience,
    ) -> Received {
        let mut bytes = Vec::new();
        for frame in &step.frames {
            bytes.extend(frames::bytes(frame, oid(target, frame).await));
        }
        let readies = self.readies(&step.frames);
        let raw = self.raw.as_mut().expect("the session is connected");
        if raw.try_send(&bytes).await.is_err() {
            *self = Self::default();
            return Received { closed: true, ..Received::default() };
        }
        if !step.waits || !step.frames.last().is_some_and(is_answered) {
            self.owed += readies.unwrap_or(0);
            return Received::default();
        }
        let goal = match (guide, readies) {
            (Some(guide), _) => Goal::Like(guide),
            (None, Some(readies)) => Goal::Readies(readies + std::mem::take(&mut self.owed)),
            (None, None) => Goal::Quiet,
        };
        let received = receive(raw, goal, patience).await;
        if received.closed {
            *self = Self::default();
        }
        received
    }

    /// Cancels the statement that an earlier step has sent, and reads its answer.
    async fn cancel(&mut self, target: &Target<'_>, patience: Patience) -> Received {
        if self.owed == 0 {
            return Received::default();
        }
        self.key.until_it_waits(target).await;
        self.key.cancel(target.port).await;
        self.answer(patience).await
    }

    /// The answer to what was sent without waiting for it.
    async fn answer(&mut self, patience: Patience) -> Received {
        let readies = Goal::Readies(std::mem::take(&mut self.owed));
        let received = receive(self.raw.as_mut().expect("the session is connected"), readies, patience).await;
        if received.closed {
            *self = Self::default();
        }
        received
    }

    /// A statement and a cancel request for it. If the statement was cancelled, it is sent again, because it may be
    /// cancelled in one run and be answered in the other. The answer to the second one counts.
    async fn interrupted(
        &mut self,
        target: &Target<'_>,
        step: &Step,
        by: &Frame,
        patience: Patience,
    ) -> Received {
        let waiting = Step { waits: false, ..step.clone() };
        let (undo, received) = match (by, target.console) {
            (Frame::Race(after, undo), _) => {
                self.send(target, &waiting, None, patience).await;
                tokio::time::sleep(Duration::from_micros(u64::from(*after))).await; // the moment is random
                self.key.cancel(target.port).await;
                (undo, self.answer(patience).await)
            }
            (Frame::Paused(undo), Some(console)) if pause(console, target.database).await => {
                self.send(target, &waiting, None, patience).await;
                let received = self.cancel(target, patience).await;
                let resume = format!("resume {}", target.database);
                console.batch_execute(&resume).await.expect("the console answers");
                (undo, received)
            }
            _ => return self.send(target, step, None, patience).await,
        };
        let expected = if undo.is_empty() { b'I' } else { b'E' };
        if received.closed || cancelled(&received) != Some(expected) {
            return received;
        }
        if !undo.is_empty() {
            let frames = vec![Frame::Query(undo.clone())];
            self.send(target, &Step::new(step.session, frames), None, patience).await;
        }
        self.send(target, step, None, patience).await
    }

    /// Disconnects, and waits until the session's connection is free, which no message announces behind a gateway.
    async fn leave(&mut self, target: &Target<'_>, patience: Patience) {
        let Self { raw: Some(mut raw), key, .. } = std::mem::take(self) else { return };
        let _ = raw.try_send(&frames::bytes(&Frame::Leave, 0)).await; // the server may have closed the connection
        let _ = tokio::time::timeout(patience.answer, raw.until_closed()).await; // a later step shows the effect
        let ended = until("the session has ended", async || !key.is_there(target).await);
        let _ = tokio::time::timeout(patience.answer, ended).await; // as above
        let busy =
            "select count(*) from pg_stat_activity where datname = current_database() and state = 'active'
            and pid <> pg_backend_pid() and backend_type = 'client backend'";
        until("a connection is cleaned", async || value(target.direct, busy).await == "0").await;
    }

    async fn connect(
        &mut self,
        target: &Target<'_>,
        parameters: &[(String, String)],
        patience: Patience,
    ) -> Received {
        let mut all = BTreeMap::from([("user", "postgres"), ("database", target.database)]);
        all.extend(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let all: Vec<_> = all.into_iter().collect();
        let mut raw = Raw::open(target.port).await;
        raw.send(&startup(0x0003_0000, &all)).await;
        let received = receive(&mut raw, Goal::Readies(1), patience).await;
        let key = received.messages.iter().find(|message| message.tag == b'K');
        let key = key.map_or_else(Key::default, |message| Key(message.body.clone()));
        *self = Self { raw: (!received.closed && !received.hangs).then_some(raw), key, ..Self::default() };
        received
    }

    /// The number of ReadyForQuery for a step, or none if only the server can determine it.
    fn readies(&mut self, frames: &[Frame]) -> Option<usize> {
        let (mut readies, mut certain) = (0, true);
        for frame in frames {
            match frame {
                Frame::Query(text) | Frame::Parse { text, .. } => {
                    let text = text.to_ascii_lowercase();
                    self.copies |= text.contains("copy ") || text.starts_with("listen");
                }
                Frame::CopyData(_) | Frame::CopyDone | Frame::CopyFail(_) => self.copies = true,
                _ => {}
            }
            match frame {
                Frame::Query(_) | Frame::Call(..) => {
                    certain &= !self.extended;
                    readies += 1;
                }
                Frame::Sync => {
                    self.extended = false;
                    readies += 1;
                }
                Frame::Connect(_) | Frame::Leave | Frame::Cancel | Frame::Race(..) | Frame::Paused(_) => {}
                _ => self.extended = true,
            }
        }
        (certain && !self.extended && !self.copies).then_some(readies)
    }
}

/// Whether a client may wait for an answer after this message.
fn is_answered(frame: &Frame) -> bool {
    !matches!(
        frame,
        Frame::Parse { .. }
            | Frame::Bind { .. }
            | Frame::Describe(..)
            | Frame::Close(..)
            | Frame::Execute(..)
    )
}

/// The OID of the function that a frame calls, 0 if there is none.
async fn oid(target: &Target<'_>, frame: &Frame) -> u32 {
    let Frame::Call(function, _) = frame else { return 0 };
    let asks = format!("select coalesce(to_regprocedure('{function}')::oid, 0)");
    value(target.direct, &asks).await.parse().expect("an oid is a number")
}

async fn receive(raw: &mut Raw, goal: Goal<'_>, patience: Patience) -> Received {
    let began = Instant::now();
    let mut received = Received::default();
    loop {
        let whole = match goal {
            Goal::Readies(readies) => received.extent() == (readies, 0),
            Goal::Quiet => false,
            Goal::Like(guide) => !guide.closed && reached(received.extent(), guide.extent()),
        };
        if whole {
            break;
        }
        let left = match goal {
            Goal::Quiet => patience.quiet,
            _ => patience.answer.saturating_sub(began.elapsed()),
        };
        match tokio::time::timeout(left, raw.message()).await {
            Ok(Some(message)) => received.messages.push(message),
            Ok(None) => {
                received.closed = true;
                break;
            }
            Err(_) => {
                received.hangs = !matches!(goal, Goal::Quiet);
                break;
            }
        }
    }
    received.took = began.elapsed();
    received
}

/// Whether a session received as much as directly.
fn reached(received: (usize, usize), direct: (usize, usize)) -> bool {
    received.0 > direct.0 || (received.0 == direct.0 && received.1 >= direct.1)
}
