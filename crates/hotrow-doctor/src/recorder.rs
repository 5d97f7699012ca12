//! Collects samples within a bound, with each statement's text once. Decides how long to wait between samples.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use hotrow_core::normalise::Normaliser;

use crate::recording::Statement;
use crate::sample::Sample;

/// Samples that are kept. With more, every second one is dropped and the interval doubles.
pub const SAMPLES_MAX: usize = 2_000;
/// Sessions and locks of all samples that are kept. With more, every second sample is dropped and the interval doubles.
pub const ENTRIES_MAX: usize = 1_000_000;
/// Different statements that are kept. Later ones have no text.
pub const STATEMENTS_MAX: usize = 1_000;
/// Values of one statement that are kept, and the characters of each.
const VALUES_MAX: usize = 8;
const VALUE_CHARS_MAX: usize = 100;
/// The share of one core's time that sampling can take, in the server and in the doctor together: one part in this many.
const SHARE: u32 = 50;
/// Samples of which the fastest tells the work of one.
const LAST: usize = 10;
/// The longest pause as long as there are fewer of them, in intervals: the first sample fills the server's caches, and on
/// a busy server it can take so long that no second one would be taken.
const FIRST_PAUSE_MAX: u32 = 5;

/// The time of one sample with its other queries.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// In the server, with the way there and back.
    pub server: Duration,
    /// The same with the work of the doctor.
    pub total: Duration,
}

/// Collects samples.
#[derive(Debug)]
pub struct Recorder {
    /// The samples so far.
    pub samples: Vec<Sample>,
    /// The statements so far.
    pub statements: Vec<Statement>,
    index: HashMap<Vec<u8>, usize>,
    normaliser: Normaliser,
    entries: usize,
    interval: Duration,
    /// The times of the last samples.
    took: VecDeque<Took>,
    /// The estimated work of all samples in the server.
    pub work: Duration,
}

impl Recorder {
    /// Begins with this time between samples.
    pub fn new(interval: Duration) -> Self {
        Self {
            samples: Vec::new(),
            statements: Vec::new(),
            index: HashMap::new(),
            normaliser: Normaliser::new(),
            entries: 0,
            interval,
            took: VecDeque::new(),
            work: Duration::ZERO,
        }
    }

    /// Adds a sample. Texts of statements become indexes.
    pub fn add(&mut self, mut sample: Sample) {
        for session in &mut sample.sessions {
            if let Some(query) = session.query.take().filter(|query| *query != "<insufficient privilege>") {
                let (statement, values) = self.statement(&query);
                (session.statement, session.values) = (statement, values);
            }
        }
        self.entries += entries(&sample);
        self.samples.push(sample);
        while self.samples.len() > SAMPLES_MAX || (self.entries > ENTRIES_MAX && self.samples.len() > 1) {
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.entries = self.samples.iter().map(entries).sum();
            self.interval *= 2;
        }
    }

    /// The index of a statement, and the first values of its text.
    pub fn statement(&mut self, query: &str) -> (Option<usize>, Vec<String>) {
        let shape = self.normaliser.run(query);
        let values = shape.literals().take(VALUES_MAX).map(|literal| {
            String::from_utf8_lossy(literal.value).chars().take(VALUE_CHARS_MAX).collect::<String>()
        });
        let values = values.collect();
        if let Some(known) = self.index.get(shape.signature) {
            return (Some(*known), values);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            return (None, values);
        }
        let types = shape.literals().map(|literal| literal.type_oid).collect();
        self.statements.push(Statement { shape: shape.shape.to_owned(), types, ..Statement::default() });
        self.index.insert(shape.signature.to_owned(), self.statements.len() - 1);
        (Some(self.statements.len() - 1), values)
    }

    /// The time until the next sample, after one that took this long. On a busy server most of a sample's time is
    /// waiting for a core, so the fastest of the last samples counts as the work of each.
    pub fn pause(&mut self, took: Took) -> Duration {
        self.took.push_back(took);
        if self.took.len() > LAST {
            self.took.pop_front();
        }
        let fastest = |part: fn(&Took) -> Duration| self.took.iter().map(part).min().unwrap_or_default();
        self.work += fastest(|took| took.server);
        let work = fastest(|took| took.total);
        let slowed = match self.took.len() < LAST {
            true => (work * SHARE).min(self.interval * FIRST_PAUSE_MAX),
            false => work * SHARE,
        };
        self.interval.max(slowed).saturating_sub(took.total)
    }
}

fn entries(sample: &Sample) -> usize {
    1 + sample.sessions.len() + sample.locks.len() + sample.rows.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Session;

    fn sample(at_us: i64, queries: &[&str]) -> Sample {
        let session = |query: &&str| Session { query: Some((*query).to_owned()), ..Session::default() };
        Sample { at_us, sessions: queries.iter().map(session).collect(), ..Sample::default() }
    }

    /// A sample that took this long in the server.
    fn took(server: Duration) -> Took {
        Took { server, total: server }
    }

    #[test]
    fn a_statement_with_other_values_is_the_same_statement() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        recorder.add(sample(1, &["update t set a = 1 where id = 7", "update t set a = 2 where id = 8"]));
        let sessions = &recorder.samples[0].sessions;
        assert_eq!((sessions[0].statement, sessions[1].statement), (Some(0), Some(0)));
        assert_eq!(sessions[1].values, ["2", "8"]);
        assert_eq!(recorder.statements[0].shape, "update t set a = $1 where id = $2");
    }

    #[test]
    fn samples_statements_and_values_are_bounded() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        for at in 0..=SAMPLES_MAX as i64 {
            recorder.add(sample(at, &[&format!("select * from t{at}")]));
        }
        assert_eq!(recorder.samples.len(), SAMPLES_MAX / 2 + 1);
        assert_eq!(recorder.samples.last().map(|sample| sample.at_us), Some(SAMPLES_MAX as i64));
        assert_eq!(
            recorder.pause(took(Duration::ZERO)),
            Duration::from_millis(100),
            "the interval has doubled"
        );
        assert_eq!(recorder.statements.len(), STATEMENTS_MAX);
        let long = format!("select '{}'", "x".repeat(5_000));
        assert_eq!(recorder.statement(&long).1[0].len(), VALUE_CHARS_MAX);
    }

    #[test]
    fn a_sample_that_takes_long_makes_samples_rare() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        assert_eq!(recorder.pause(took(Duration::from_micros(500))), Duration::from_micros(49_500));
        assert_eq!(
            recorder.pause(took(Duration::from_millis(10))),
            Duration::from_millis(40),
            "it waited for a core"
        );
        for _ in 0..LAST {
            recorder.pause(took(Duration::from_millis(10)));
        }
        assert_eq!(recorder.pause(took(Duration::from_millis(10))), Duration::from_millis(490));
        assert_eq!(recorder.work, Duration::from_micros(10 * 500) + Duration::from_millis(30));
    }

    #[test]
    fn the_work_of_the_doctor_makes_samples_rare_too() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        let one = Took { server: Duration::from_millis(1), total: Duration::from_millis(3) };
        for _ in 1..LAST {
            recorder.pause(one);
        }
        assert_eq!(recorder.pause(one), Duration::from_millis(147), "two parts in a hundred are 3 of 150");
        assert_eq!(recorder.work, Duration::from_millis(10), "the server's part");
    }

    #[test]
    fn a_slow_first_sample_does_not_decide_the_pause() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        for _ in 1..LAST {
            assert_eq!(recorder.pause(took(Duration::from_millis(60))), Duration::from_millis(190));
        }
        assert_eq!(
            recorder.pause(took(Duration::from_millis(60))),
            Duration::from_millis(2_940),
            "all took long"
        );
    }
}
