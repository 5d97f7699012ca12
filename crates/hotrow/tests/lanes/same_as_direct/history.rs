//! The answers to the clients' units, and which version of which row each shows. `replay.rs` decides which order is
//! right.

use std::fmt;

use super::units::{DELETE, EVENT, Sees, Step, Unit};
use hotrow_testkit::line::Answer;

/// No event gets an ID as high as this.
const UNUSED: u64 = 1_000_000;

/// A unit and its answer, with the times when it was sent and answered.
#[derive(Clone)]
pub struct Record {
    pub unit: Unit,
    pub answer: Answer,
    pub sent: u64,
    pub answered: u64,
}

/// A row's version before and after a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub row: i64,
    pub before: u64,
    pub after: u64,
}

/// What an answer shows about its unit's place in the order.
#[derive(Debug)]
pub enum Place {
    /// Exactly when these rows had these versions.
    Exact(Vec<Observation>),
    /// At any time after a moment that the answer does not show. The unit changed nothing.
    Late,
}

impl Record {
    /// What the answer shows about the unit's place.
    pub fn place(&self) -> Place {
        let failed = self.answer.error().is_some();
        let mut observations = Vec::new();
        for (step, part) in self.unit.steps.iter().zip(self.parts()) {
            let version = part.rows().first().map(|row| number(row[0].as_deref().unwrap_or_default()));
            let refused = part.error().and_then(|_| failing_row(&part)).map(|row| number(row[2]));
            let (row, before, after) = match (step.sees, version, refused) {
                (Sees::Nothing, ..) => continue,
                (Sees::Made(row), Some(version), _) => (row, version - 1, version),
                (Sees::Made(row), None, Some(version)) => (row, version - 1, version - 1),
                (Sees::Read(row) | Sees::ReadMortal(row), Some(version), _) => (row, version, version),
                (Sees::Read(row), None, _) => (row, 0, 0),
                (Sees::ReadMortal(_), None, _) => return Place::Late,
                (Sees::Made(_), None, None) => match part.error() {
                    Some(report) if report.code != "23505" => continue, // this error does not depend on the row's contents
                    _ => return Place::Late,
                },
            };
            // The version of a deleted row is counted on, so no unit can follow it.
            let (before, after) =
                if step.statement == DELETE { (before + 1, before + 2) } else { (before, after) };
            observations.push(Observation { row, before, after });
        }
        if failed {
            observations.iter_mut().for_each(|observation| observation.after = observation.before);
        }
        Place::Exact(observations)
    }

    /// The answers to the single statements, as far as they arrived.
    fn parts(&self) -> Vec<Answer> {
        let mut parts = vec![Answer::default()];
        for (tag, body) in self.answer.frames() {
            let part = parts.last_mut().expect("there is always one");
            part.bytes.push(tag as u8);
            part.bytes.extend_from_slice(
                &(u32::try_from(body.len()).expect("the answer is short") + 4).to_be_bytes(),
            );
            part.bytes.extend_from_slice(body);
            if tag == 'C' {
                parts.push(Answer::default());
            }
        }
        parts
    }

    /// The number that a sequence gave to an event, or an unused one if the answer does not show it. The number is not
    /// part of the promise, because sequences have gaps.
    pub fn event_id(&self) -> Option<u64> {
        self.unit.steps.iter().find(|step| step.statement == EVENT)?;
        let returned = self.answer.rows().first().and_then(|row| row[0].clone());
        let id =
            returned.map(|id| number(&id)).or_else(|| failing_row(&self.answer).map(|row| number(row[0])));
        id.or(Some(UNUSED))
    }
}

/// The row that violates a check constraint, as the error's detail shows it.
fn failing_row(answer: &Answer) -> Option<Vec<&str>> {
    let (_, body) = answer.frames().into_iter().find(|(tag, _)| *tag == 'E')?;
    let detail = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'D'))?;
    let values = str::from_utf8(&detail[1..]).ok()?.strip_prefix("Failing row contains (")?;
    Some(values.split(", ").collect())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.unit.steps.iter().map(Step::text).collect();
        write!(formatter, "{:?} {}..{} {} -> ", self.unit.style, self.sent, self.answered, texts.join("; "))?;
        write_answer(&self.answer, formatter)
    }
}

fn write_answer(answer: &Answer, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (tag, body) in answer.frames() {
        write!(formatter, "{tag}{:?} ", String::from_utf8_lossy(body))?;
    }
    Ok(())
}
