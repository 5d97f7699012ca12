//! Idempotency keys: one request does the work, its repetition gets the same answer, and another request with the same key is
//! rejected.

use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::database::{Database, Error, Value};
use crate::records::get;

const INSERT: &str = include_str!("../sql/insert_request.sql");
const READ: &str = include_str!("../sql/request.sql");
const TAKE_OVER: &str = include_str!("../sql/take_over_request.sql");
const ANSWER: &str = include_str!("../sql/answer_request.sql");
const REFUSE: &str = include_str!("../sql/refuse_request.sql");
const RELEASE: &str = include_str!("../sql/release_request.sql");

/// A request that this program has to execute.
#[derive(Clone, Debug)]
pub struct Claim {
    key: String,
    run: Uuid,
    /// The payment it is about.
    pub intent: Uuid,
    /// The attempt it makes.
    pub attempt: Uuid,
    /// Whether another program may have begun it before.
    pub again: bool,
}

/// The next action for a request.
#[derive(Debug)]
pub enum Claimed {
    /// Carry it out.
    Ours(Claim),
    /// It has been carried out: this is the answer.
    Answered(u16, String),
    /// Another request has this key.
    Different,
    /// Another program works on it.
    Running,
}

/// A digest that distinguishes different requests.
pub fn fingerprint(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in [method.as_bytes(), path.as_bytes(), body] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    digest.finalize().to_vec()
}

/// Determines the next action for a request about this payment, or about a new one. A program that has worked on the request
/// for longer than the lease is taken to be dead.
pub async fn claim(
    database: &Database,
    key: &str,
    fingerprint: &[u8],
    about: Option<Uuid>,
    lease: Duration,
) -> Result<Claimed, Error> {
    let run = Uuid::now_v7();
    let (intent, attempt) = (about.unwrap_or_else(Uuid::now_v7), Uuid::now_v7());
    let written = database.execute(INSERT, &[&key, &fingerprint, &run, &intent, &attempt]).await?;
    if written == 1 {
        return Ok(Claimed::Ours(Claim { key: key.to_owned(), run, intent, attempt, again: false }));
    }
    let Some(row) = database.row(READ, &[&key, &lease.as_secs_f64()]).await? else {
        return Ok(Claimed::Running);
    };
    if get::<&[u8]>(&row, "fingerprint")? != fingerprint {
        return Ok(Claimed::Different);
    }
    if let (Some(status), Some(answer)) = (get::<Option<i32>>(&row, "status")?, get(&row, "answer")?) {
        let status = u16::try_from(status).map_err(|error| Error::Nonsense(format!("status: {error}")))?;
        return Ok(Claimed::Answered(status, answer));
    }
    let theirs: Uuid = get(&row, "run")?;
    let abandoned: bool = get(&row, "abandoned")?;
    if !abandoned || database.execute(TAKE_OVER, &[&key, &theirs, &run]).await? == 0 {
        return Ok(Claimed::Running);
    }
    let (intent, attempt) = (get(&row, "intent")?, get(&row, "attempt")?);
    Ok(Claimed::Ours(Claim { key: key.to_owned(), run, intent, attempt, again: true }))
}

impl Claim {
    /// Records the answer for repetitions. False if another program has taken the request over meanwhile, and answered first.
    pub async fn answer(&self, database: &Database, status: u16, answer: &str) -> Result<bool, Error> {
        let values: [Value<'_>; 3] = [&self.key, &i32::from(status), &answer];
        Ok(database.execute(ANSWER, &values).await? == 1)
    }

    /// Records the refusal for repetitions. False if another program has taken the request over meanwhile.
    pub async fn refuse(&self, database: &Database, status: u16, problem: &str) -> Result<bool, Error> {
        let values: [Value<'_>; 4] = [&self.key, &self.run, &i32::from(status), &problem];
        Ok(database.execute(REFUSE, &values).await? == 1)
    }

    /// Records that there is no answer to keep: a repetition takes over at once.
    pub async fn release(&self, database: &Database) -> Result<(), Error> {
        database.execute(RELEASE, &[&self.key, &self.run]).await.map(drop)
    }
}
