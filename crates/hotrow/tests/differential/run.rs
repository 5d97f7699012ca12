//! Plays a program at one port, one step after another, and writes down what each session hears. The direct run decides
//! how long an answer is; the run through the gateway waits for as much. Never judges.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::frames;
use crate::program::{Frame, NUMBER, Program, Step};
use hotrow_testkit::raw::{Message, Raw, startup};
use hotrow_testkit::{until, value};
use tokio_postgres::Client;

/// Where a program is played.
pub struct Place<'a> {
    pub port: u16,
    pub database: &'a str,
    /// A direct connection to the same database.
    pub direct: &'a Client,
}

/// How long to wait for what nobody announces.
#[derive(Clone, Copy)]
pub struct Patience {
    /// A direct session that is silent for so long has said all.
    pub quiet: Duration,
    /// An answer that takes longer never comes.
    pub answer: Duration,
}

/// What a session heard for one step.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    pub messages: Vec<Message>,
    /// Whether the connection was closed behind them.
    pub closed: bool,
    /// Whether an answer was still to come when patience ended.
    pub hangs: bool,
    pub took: Duration,
}

impl Heard {
    /// How many ReadyForQuery there are, and how many messages behind the last that belong to an answer.
    fn extent(&self) -> (usize, usize) {
        let (mut readies, mut behind) = (0, 0);
        for message in &self.messages {
            match message.tag {
                b'Z' => (readies, behind) = (readies + 1, 0),
                b'N' | b'S' | b'A' => {}
                _ => behind += 1,
            }
        }
        (readies, behind)
    }
}

/// One session's connection and what is known of it without looking at answers.
#[derive(Default)]
struct Session {
    raw: Option<Raw>,
    /// Messages of an extended query are on their way without a Sync, or COPY may be: nobody can say in advance how many
    /// ReadyForQuery come.
    extended: bool,
    copies: bool,
    /// ReadyForQuery of steps that nobody has waited for.
    owed: usize,
}

/// When an answer is whole.
enum Goal<'a> {
    Readies(usize),
    Quiet,
    Like(&'a Heard),
}

/// Plays a program; `number` takes the place of [`NUMBER`]. Behind its steps come, for each session in order, what else
/// it hears. `guide` is what was heard directly. Ends early when `each` says so.
pub async fn play(
    place: &Place<'_>,
    program: &Program,
    number: &str,
    guide: Option<&[Heard]>,
    patience: Patience,
    mut each: impl FnMut(usize, &Heard) -> bool,
) -> Vec<Heard> {
    let mut sessions: BTreeMap<char, Session> = BTreeMap::new();
    let mut all = Vec::new();
    for (index, step) in program.steps.iter().enumerate() {
        let frames: Vec<Frame> = step.frames.iter().map(|frame| frame.renamed(NUMBER, number)).collect();
        let step = Step { frames, ..step.clone() };
        let session = sessions.entry(step.session).or_default();
        let heard = session.step(place, &step, guide.map(|guide| &guide[index]), patience).await;
        let goes_on = each(index, &heard);
        all.push(heard);
        if !goes_on {
            return all;
        }
    }
    let known = program.steps.len();
    // What is still to come, such as notifications, comes through a gateway a little later.
    let quiet = if guide.is_some() { patience.quiet * 4 } else { patience.quiet };
    for (index, session) in sessions.values_mut().enumerate() {
        let heard = match &mut session.raw {
            Some(raw) if session.copies => hear(raw, Goal::Quiet, Patience { quiet, ..patience }).await,
            _ => Heard::default(),
        };
        let goes_on = each(known + index, &heard);
        all.push(heard);
        if !goes_on {
            return all;
        }
    }
    for session in sessions.values_mut() {
        if let Some(raw) = &mut session.raw {
            let _ = raw.try_send(&frames::bytes(&Frame::Leave, 0)).await; // it may have hung up
        }
    }
    all
}

impl Session {
    async fn step(
        &mut self,
        place: &Place<'_>,
        step: &Step,
        guide: Option<&Heard>,
        patience: Patience,
    ) -> Heard {
        let leaves = step.frames.contains(&Frame::Leave);
        let connects = step.frames.iter().find_map(|frame| match frame {
            Frame::Connect(parameters) => Some(&parameters[..]),
            _ => None,
        });
        if leaves || connects.is_some() {
            self.leave(place, patience).await;
        }
        if leaves {
            return Heard::default();
        }
        if self.raw.is_none() {
            let heard = self.connect(place, connects.unwrap_or_default(), patience).await;
            if connects.is_some() || self.raw.is_none() {
                return heard;
            }
        }
        let mut bytes = Vec::new();
        for frame in &step.frames {
            bytes.extend(frames::bytes(frame, oid(place, frame).await));
        }
        let readies = self.readies(&step.frames);
        let raw = self.raw.as_mut().expect("it is connected");
        if raw.try_send(&bytes).await.is_err() {
            *self = Self::default();
            return Heard { closed: true, ..Heard::default() };
        }
        if !step.waits || !step.frames.last().is_some_and(is_answered) {
            self.owed += readies.unwrap_or(0);
            return Heard::default();
        }
        let goal = match (guide, readies) {
            (Some(guide), _) => Goal::Like(guide),
            (None, Some(readies)) => Goal::Readies(readies + std::mem::take(&mut self.owed)),
            (None, None) => Goal::Quiet,
        };
        let heard = hear(raw, goal, patience).await;
        if heard.closed {
            *self = Self::default();
        }
        heard
    }

    /// Leaves, and waits until what the session held is free: nobody announces that behind a gateway.
    async fn leave(&mut self, place: &Place<'_>, patience: Patience) {
        let Some(mut raw) = std::mem::take(self).raw else { return };
        let _ = raw.try_send(&frames::bytes(&Frame::Leave, 0)).await; // it may have hung up
        let _ = tokio::time::timeout(patience.answer, raw.until_closed()).await; // a later step shows what this means
        tokio::time::sleep(patience.quiet).await;
        let busy =
            "select count(*) from pg_stat_activity where datname = current_database() and state = 'active'
            and pid <> pg_backend_pid() and backend_type = 'client backend'";
        until("a connection is cleaned", async || value(place.direct, busy).await == "0").await;
    }

    async fn connect(
        &mut self,
        place: &Place<'_>,
        parameters: &[(String, String)],
        patience: Patience,
    ) -> Heard {
        let mut all = BTreeMap::from([("user", "postgres"), ("database", place.database)]);
        all.extend(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let all: Vec<_> = all.into_iter().collect();
        let mut raw = Raw::open(place.port).await;
        raw.send(&startup(0x0003_0000, &all)).await;
        let heard = hear(&mut raw, Goal::Readies(1), patience).await;
        *self = Self { raw: (!heard.closed && !heard.hangs).then_some(raw), ..Self::default() };
        heard
    }

    /// How many ReadyForQuery a step brings; none where only the server can say.
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
                Frame::Connect(_) | Frame::Leave => {}
                _ => self.extended = true,
            }
        }
        (certain && !self.extended && !self.copies).then_some(readies)
    }
}

/// Whether a client may wait for an answer behind this message.
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

/// The number of a function, where a frame calls one that there is.
async fn oid(place: &Place<'_>, frame: &Frame) -> u32 {
    let Frame::Call(function, _) = frame else { return 0 };
    let asks = format!("select coalesce(to_regprocedure('{function}')::oid, 0)");
    value(place.direct, &asks).await.parse().expect("an oid is a number")
}

async fn hear(raw: &mut Raw, goal: Goal<'_>, patience: Patience) -> Heard {
    let began = Instant::now();
    let mut heard = Heard::default();
    loop {
        let whole = match goal {
            Goal::Readies(readies) => heard.extent() == (readies, 0),
            Goal::Quiet => false,
            Goal::Like(guide) => !guide.closed && reached(heard.extent(), guide.extent()),
        };
        if whole {
            break;
        }
        let left = match goal {
            Goal::Quiet => patience.quiet,
            _ => patience.answer.saturating_sub(began.elapsed()),
        };
        match tokio::time::timeout(left, raw.message()).await {
            Ok(Some(message)) => heard.messages.push(message),
            Ok(None) => {
                heard.closed = true;
                break;
            }
            Err(_) => {
                heard.hangs = !matches!(goal, Goal::Quiet);
                break;
            }
        }
    }
    heard.took = began.elapsed();
    heard
}

/// Whether as much was heard as directly.
fn reached(heard: (usize, usize), direct: (usize, usize)) -> bool {
    heard.0 > direct.0 || (heard.0 == direct.0 && heard.1 >= direct.1)
}
