//! Asks the catalog which code a statement can reach, and so which state it can leave on its connection. `hotrow-core`
//! decides what follows from the answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::asker::{Asker, from_json};
use hotrow_connect::lock::Lock;
use hotrow_connect::upstream::{self, Rows, Upstream};
use hotrow_core::classify::{self, Effect, Found, Names, Reach};
use hotrow_core::limits;
use hotrow_core::session::Proof;
use hotrow_core::settings::array;

use crate::metrics::METRICS;
use crate::pool::Pool;
use crate::statements::Statement;

/// A proof, with the epoch of the catalog and the time of its first question.
type Dated = (Proof, (u64, Instant));

/// Proofs by what the texts of statements show. Texts that differ in values have the same proof, and are not asked about again.
#[derive(Debug, Default)]
pub(super) struct Proofs(Lock<HashMap<String, Dated>>);

impl Proofs {
    fn get(&self, reach: &Reach, epoch: u64, age_max: Duration) -> Option<Dated> {
        let proofs = self.0.lock();
        let (proof, asked) = *proofs.get(&format!("{reach:?}"))?;
        (asked.0 == epoch && asked.1.elapsed() < age_max).then_some((proof, asked))
    }

    fn note(&self, reach: &Reach, dated: Dated) {
        let mut proofs = self.0.lock();
        if proofs.len() >= limits::PROOFS_MAX {
            proofs.clear();
        }
        proofs.insert(format!("{reach:?}"), dated);
    }
}

/// The connection on which the catalog is asked.
enum On<'c> {
    /// One on which only the gateway asks: the query stays prepared.
    Own(&'c mut Asker),
    /// One on which statements of a session have run.
    Session(&'c mut Upstream),
}

impl On<'_> {
    async fn query(&mut self, text: &'static str, values: &[&str]) -> Result<Rows, upstream::Error> {
        match self {
            On::Own(asker) => asker.query(text, values).await,
            On::Session(upstream) => upstream.query_catalog(text, values).await,
        }
    }
}

impl Pool {
    /// The state that a statement which is passed through is known to leave behind. If this is unknown, the catalog
    /// is asked in time for the next run, or by the session after this run. `as_pool` is whether its names mean what they mean
    /// in the pool. A verdict relies on that. The other proofs are about all objects with these names.
    pub fn proof(&self, statement: &Arc<Statement>, as_pool: bool) -> Option<Proof> {
        if statement.is_plain {
            return Some(Proof::CLEAN);
        }
        if as_pool && let Some(packing) = self.packing(statement) {
            let moves_sequence = packing.touches_sequence;
            return Some(match packing.is_declared {
                true => Proof { moves_sequence, ..Proof::DECLARED },
                false => Proof { moves_sequence, ..Proof::CLEAN },
            });
        }
        let epoch = self.catalog_epoch();
        let age_max = self.config().catalog_age;
        let known = statement.proof(epoch).filter(|(_, age)| *age < age_max).or_else(|| {
            let reach = str::from_utf8(&statement.text).ok().and_then(classify::reach)?;
            let (proof, asked) = self.judge.proofs.get(&reach, epoch, age_max)?;
            statement.prove(proof, asked);
            Some((proof, asked.1.elapsed()))
        });
        match known {
            Some((_, age)) if age < age_max / 2 => {}
            None if statement.calls_others() => {} // the session asks after the run
            _ => self.judge.want_proof(statement),
        }
        known.map(|(proof, _)| proof)
    }

    /// What these statements, which have run on this connection, may have left there although the server does not show it.
    pub async fn judge(
        &self,
        upstream: &mut Upstream,
        statements: &[Arc<Statement>],
    ) -> Result<Effect, upstream::Error> {
        let mut hidden = Effect::NONE;
        for statement in statements {
            let proof = match self.proof(statement, false) {
                Some(proof) => proof,
                None => prove_again(self, &mut On::Session(upstream), statement).await?,
            };
            hidden = hidden.union(proof.hidden);
        }
        Ok(hidden)
    }

    /// Asks the catalog about statements, on the connection for questions.
    pub(super) async fn prove_all(
        &self,
        asker: &mut Asker,
        statements: &[Arc<Statement>],
    ) -> Result<(), upstream::Error> {
        for statement in statements {
            match prove(self, &mut On::Own(asker), statement).await {
                Ok(_) => {}
                Err(upstream::Error::Refused { message, .. }) => {
                    tracing::debug!(message, "the server refuses a question about the code of a statement");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Asks the catalog about a statement, once more if the server refuses that: an object may have been dropped meanwhile.
async fn prove_again(pool: &Pool, on: &mut On<'_>, statement: &Statement) -> Result<Proof, upstream::Error> {
    match prove(pool, on, statement).await {
        Err(upstream::Error::Refused { .. }) => prove(pool, on, statement).await,
        proof => proof,
    }
}

/// Asks the catalog about a statement, and notes the answer.
async fn prove(pool: &Pool, on: &mut On<'_>, statement: &Statement) -> Result<Proof, upstream::Error> {
    let asked = (pool.catalog_epoch(), Instant::now());
    let Some(reach) = str::from_utf8(&statement.text).ok().and_then(classify::reach) else {
        statement.prove(Proof::NONE, asked);
        return Ok(Proof::NONE);
    };
    METRICS.catalog_questions.inc();
    let mut judged = reach.clone();
    let expected = statement.reached();
    if let Some(names) = &expected {
        judged.expect(names.clone());
    }
    look_up_all(on, &mut judged).await?;
    if expected.is_some() && !judged.is_clean() {
        // The code with one of these names may not be reached any more.
        judged = reach.clone();
        look_up_all(on, &mut judged).await?;
    }
    let proof = Proof {
        is_clean: judged.is_clean(),
        moves_sequence: judged.moves_sequence(),
        changes_meaning: judged.changes_meaning(),
        hidden: judged.hidden(),
    };
    statement.prove(proof, asked);
    pool.judge.proofs.note(&reach, (proof, asked));
    let remembers = proof.is_clean && judged.looked_up().count() <= limits::REACHED_REMEMBERED_MAX;
    statement.note_reached(remembers.then(|| judged.looked_up().clone()));
    Ok(proof)
}

async fn look_up_all(on: &mut On<'_>, reach: &mut Reach) -> Result<(), upstream::Error> {
    while let Some(names) = reach.names() {
        let found = look_up(on, names).await?;
        reach.found(found);
    }
    Ok(())
}

/// The code with these names, if it is not too much.
async fn look_up(on: &mut On<'_>, names: &Names) -> Result<Option<Found>, upstream::Error> {
    let values = [
        array(&names.functions),
        array(&names.fields),
        array(&names.operators),
        array(&names.read),
        array(&names.written),
        names.fires_events.to_string(),
        limits::REACHED_CODE_MAX.to_string(),
    ];
    let values = values.each_ref().map(String::as_str);
    let rows = on.query(include_str!("../../sql/reached_code.sql"), &values).await?;
    from_json(rows)
}
