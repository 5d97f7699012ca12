//! Verdicts about a pool's statements. A verdict follows from facts about objects of the catalog (`hotrow_core::classify`). If facts
//! are missing or old, one task asks the server, for all statements that wait, on a connection of its own. No client waits for that
//! but those whose call may be merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hotrow_connect::asker::Asker;
use hotrow_connect::lock::Lock;
use hotrow_connect::upstream::Error;
use hotrow_core::classify::{
    self, Analysis, Answers, Asked, Candidate, Catalog, Decision, Facts, Lack, Packing, Questions,
};
use hotrow_core::limits;
use hotrow_core::session::{Statement as _, Verdict};
use hotrow_lane::lane::LaneKind;
use tokio::sync::Notify;

use super::Pool;
use super::reach::Proofs;
use crate::config::Config;
use crate::lane::ToLane;
use crate::metrics::METRICS;
use crate::server::database::DatabaseUse;
use crate::server::held;
use crate::statements::{CachedVerdict, Statement, VerdictRecord, WhyNot};

/// Rounds of questions about a statement. A fact can lead to the next question: a table to its triggers, a function to the
/// functions that it calls. More rounds are needed only if the catalog changes meanwhile.
const ROUNDS_MAX: usize = 8;

/// What a pool knows of its catalog, and the statements that wait for more.
#[derive(Debug)]
pub(super) struct Judge {
    /// Facts are as old as the time since then.
    start: Instant,
    known: Lock<Catalog>,
    /// What statements leave behind that are passed through.
    pub(super) proofs: Proofs,
    wanted: Lock<Vec<Wanted>>,
    wake: Notify,
    /// The last question has failed, and nothing is asked for a while.
    rests: AtomicBool,
    /// The connection for questions while nothing is asked, with the generation of the database's connections.
    asker: Lock<Option<(u64, Asker)>>,
}

/// Number of statements that are asked about at once. If the server takes too long, the answers about all of them are lost.
const ASKED_AT_ONCE: usize = 32;

/// Something that is to be found out about a statement.
#[derive(Debug)]
enum Wanted {
    Verdict(Arc<Statement>),
    Proof(Arc<Statement>),
}

/// What has to be asked before a verdict.
enum Missing {
    Facts(Questions),
    Description,
}

impl Default for Judge {
    fn default() -> Self {
        Judge {
            start: Instant::now(),
            known: Lock::default(),
            proofs: Proofs::default(),
            wanted: Lock::default(),
            wake: Notify::new(),
            rests: AtomicBool::new(false),
            asker: Lock::default(),
        }
    }
}

impl Judge {
    /// Closes the connection for questions.
    pub(super) fn close(&self) {
        drop(self.asker.lock().take());
    }

    fn now(&self, epoch: u64) -> Asked {
        Asked { epoch, at: self.start.elapsed() }
    }

    /// It is to be found out what a statement leaves behind.
    pub(super) fn want_proof(&self, statement: &Arc<Statement>) {
        self.want(&statement.awaits_proof, Wanted::Proof(statement.clone()));
    }

    /// Puts something on the list of what is to be found out, once. False if the list is full.
    fn want(&self, is_awaited: &AtomicBool, wanted: Wanted) -> bool {
        if is_awaited.swap(true, SeqCst) {
            return true;
        }
        let mut list = self.wanted.lock();
        if list.len() >= limits::JUDGEMENTS_WAITING_MAX {
            is_awaited.store(false, SeqCst);
            return false;
        }
        list.push(wanted);
        drop(list);
        self.wake.notify_one();
        true
    }

    /// The next things to be found out. None after this time without any, if the connection is open.
    async fn next(&self, idle: Duration) -> Option<Vec<Wanted>> {
        loop {
            let wanted = std::mem::take(&mut *self.wanted.lock());
            if !wanted.is_empty() {
                return Some(wanted);
            }
            if self.asker.lock().is_none() {
                self.wake.notified().await;
            } else if tokio::time::timeout(idle, self.wake.notified()).await.is_err() {
                return None;
            }
        }
    }
}

impl Wanted {
    fn analysis(&self) -> &Analysis {
        let (Wanted::Verdict(statement) | Wanted::Proof(statement)) = self;
        &statement.analysis
    }

    /// The question was asked, with or without success.
    fn done(&self) {
        match self {
            Wanted::Verdict(statement) => {
                statement.awaits_verdict.store(false, SeqCst);
                statement.was_judged.notify_waiters();
            }
            Wanted::Proof(statement) => statement.awaits_proof.store(false, SeqCst),
        }
    }
}

/// The facts that count, if they may have this age now.
fn since(now: Asked, age_max: Duration) -> Asked {
    Asked { at: now.at.saturating_sub(age_max), ..now }
}

/// Finds out what is wanted, as long as the pool is open.
pub(super) async fn run(pool: Arc<Pool>) {
    let (least, most) =
        (Duration::from_millis(limits::RECONNECT_MIN_MS), Duration::from_millis(limits::RECONNECT_MAX_MS));
    let mut pause = least;
    loop {
        let Some(wanted) = pool.judge.next(pool.config().catalog_age).await else {
            pool.judge.close();
            continue;
        };
        let mut failure = None;
        for some in wanted.chunks(ASKED_AT_ONCE) {
            if failure.is_none() {
                failure = pool.find_out_in_time(some).await;
            }
            pool.judge.rests.store(failure.is_some(), SeqCst);
            some.iter().for_each(Wanted::done);
        }
        let Some(error) = failure else {
            pause = least;
            continue;
        };
        tracing::debug!(error, "the catalog could not be asked");
        tokio::time::sleep(pause).await; // what is wanted meanwhile is passed through
        pool.judge.rests.store(false, SeqCst);
        pause = (pause * 2).min(most);
    }
}

impl Pool {
    /// The verdict about a statement, if there are facts for it. Otherwise the server is asked in time for a later run.
    pub fn known_verdict(&self, statement: &Arc<Statement>) -> Option<Verdict> {
        let Analysis::Candidate(candidate) = &statement.analysis else { return Some(Verdict::Pass) };
        let epoch = self.catalog_epoch();
        let age_max = self.config().catalog_age;
        let known = match statement.known(epoch, age_max) {
            CachedVerdict::Fresh(verdict) => return Some(verdict),
            CachedVerdict::Ageing(verdict) => Some(verdict),
            CachedVerdict::Missing => {
                match self.decide(statement, candidate, since(self.judge.now(epoch), age_max)) {
                    Ok(verdict) => return Some(verdict),
                    // It is right to pass a statement through, also if the reason is gone.
                    Err(_) => statement.last_verdict().filter(|last| {
                        !matches!(last, Verdict::Packed(_)) && self.config().verdict_wait.is_zero()
                    }),
                }
            }
        };
        self.want_verdict(statement);
        known
    }

    /// A verdict is wanted. False if too many are.
    fn want_verdict(&self, statement: &Arc<Statement>) -> bool {
        self.judge.want(&statement.awaits_verdict, Wanted::Verdict(statement.clone()))
    }

    /// The verdict about a statement. If the server has to be asked, this takes as long as it needs, but not too long.
    pub async fn verdict(&self, statement: &Arc<Statement>) -> Verdict {
        let is_wanted = self.known_verdict(statement).is_none() && self.want_verdict(statement);
        if is_wanted && !self.judge.rests.load(SeqCst) {
            let of_call = Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
            let patience = if statement.is_call() { of_call } else { self.config().verdict_wait };
            let _ = tokio::time::timeout(patience, statement.judged()).await;
        }
        self.known_verdict(statement).unwrap_or(Verdict::Pass)
    }

    /// Decides about a statement from facts that count since then.
    fn decide(
        &self,
        statement: &Arc<Statement>,
        candidate: &Candidate,
        since: Asked,
    ) -> Result<Verdict, Missing> {
        let found = match self.judge.known.lock().facts(candidate, since) {
            Ok(found) => found,
            // A role that cannot read the catalog there (a schema without USAGE) gets the server's own error for its statement.
            Err(Lack { refusal: Some(refusal), .. }) => {
                let reason = format!("the server refuses its role's query about it: {}", refusal.message);
                let (why_not, asked) = (Some(WhyNot { reason, remedy: None }), (since.epoch, Instant::now()));
                statement.decide(VerdictRecord::new(Verdict::Pass, why_not, 0, asked));
                return Ok(Verdict::Pass);
            }
            Err(lack) => return Err(Missing::Facts(lack.questions)),
        };
        let (mut state, mut why_not) = (found.value.state(), None);
        let verdict = if statement.is_of_another_state(state) {
            // A prepared statement keeps the types of its parameters. From now on the text is another statement.
            self.context.statements.supersede(statement);
            // The statement may have run in a lane under a definition that was not judged, and may have left state there.
            if statement.packing().is_some() {
                self.ask_lanes(ToLane::Renew);
            }
            state = 0;
            Verdict::Pass
        } else {
            self.rule(statement, candidate, &found.value, &mut why_not)?
        };
        let asked = (since.epoch, self.judge.start + found.asked);
        let is_checked = self.config().verdict_wait.is_zero()
            && matches!(&verdict, Verdict::Packed(packing) if packing.kind == LaneKind::Write && !packing.touches_sequence)
            && candidate.relies_on_tables_only(&found.value);
        let record = VerdictRecord::new(verdict.clone(), why_not, state, asked);
        statement.decide(record.checked(is_checked));
        Ok(verdict)
    }

    fn rule(
        &self,
        statement: &Statement,
        candidate: &Candidate,
        facts: &Facts,
        why_not: &mut Option<WhyNot>,
    ) -> Result<Verdict, Missing> {
        let description = statement.description.get();
        if description.is_none() && candidate.needs_description() {
            return Err(Missing::Description);
        }
        match classify::decide(candidate, facts, &statement.known_types(candidate)) {
            Decision::Packed(_) if statement.lacks_description() => Err(Missing::Description),
            Decision::Packed(_) if description.is_some_and(Option::is_none) => {
                let reason = "the server cannot prepare it with the types of its parameters".to_owned();
                *why_not = Some(WhyNot { reason, remedy: None });
                Ok(Verdict::Pass)
            }
            Decision::Packed(packing) if self.is_unpacked(&packing) => {
                let reason = "the setting unpacked_tables names its table".to_owned();
                *why_not = Some(WhyNot { reason, remedy: None });
                Ok(Verdict::Pass)
            }
            Decision::Packed(packing) => Ok(Verdict::Packed(Arc::new(packing))),
            Decision::Pass { reason, locks, .. } => {
                let locks = locks.filter(|packing| !self.is_unpacked(packing));
                tracing::debug!(statement = statement.id, ?reason, "decided: passed through");
                *why_not = Some(WhyNot::from(&reason));
                Ok(locks.map_or(Verdict::Pass, |packing| Verdict::Locks(packing.into())))
            }
        }
    }

    /// Whether the settings name one of its tables.
    fn is_unpacked(&self, packing: &Packing) -> bool {
        let config = self.config();
        packing.parts().any(|part| config.unpacked_tables.has(&part.table))
    }

    /// Finds out what is wanted, if the server answers. Otherwise returns the reason.
    async fn find_out_in_time(self: &Arc<Self>, wanted: &[Wanted]) -> Option<String> {
        let patience = Duration::from_millis(limits::CONNECT_TIMEOUT_MS);
        match tokio::time::timeout(patience, self.find_out(wanted)).await {
            Ok(found) => found.err().map(|error| error.to_string()),
            Err(_) => Some("the server does not answer".to_owned()),
        }
    }

    /// Finds out what is wanted. Asks for everything that is missing or ages.
    async fn find_out(self: &Arc<Self>, wanted: &[Wanted]) -> Result<(), held::Error> {
        let config = self.config().clone();
        let mut is_locked = false;
        for _ in 0..ROUNDS_MAX {
            let now = self.judge.now(self.catalog_epoch());
            let (questions, undescribed) = self.missing(wanted, since(now, config.catalog_age / 2));
            if is_locked || questions.is_empty() && undescribed.is_empty() {
                break;
            }
            METRICS.catalog_questions.inc();
            let answers;
            (answers, is_locked) = self.ask(&questions, &undescribed, &config).await?;
            self.judge.known.lock().put(answers, now);
        }
        let unproven: Vec<_> = wanted.iter().filter_map(|one| self.unproven(one)).cloned().collect();
        if !unproven.is_empty() {
            let mut asking = self.begin_asking(&config).await?;
            self.prove_all(&mut asking.asker, &unproven).await?;
            self.end_asking(asking);
        }
        for one in wanted {
            if let Wanted::Verdict(statement) = one
                && !statement.nodes().is_empty()
            {
                let (pool, statement) = (self.clone(), statement.clone());
                tokio::spawn(async move {
                    let epoch = pool.catalog_epoch();
                    pool.ask_nodes_again(&statement, epoch).await;
                });
            }
        }
        Ok(())
    }

    /// The statement, if it is to be found out what it leaves behind: also if its verdict was wanted, and is to pass it through.
    fn unproven<'w>(&self, wanted: &'w Wanted) -> Option<&'w Arc<Statement>> {
        match wanted {
            Wanted::Proof(statement) => Some(statement),
            Wanted::Verdict(statement) => {
                let is_passed = matches!(statement.last_verdict(), Some(Verdict::Pass | Verdict::Locks(_)));
                let is_proven = || statement.is_plain || statement.proof(self.catalog_epoch()).is_some();
                (is_passed && !is_proven()).then_some(statement)
            }
        }
    }

    /// Finds out what the known facts say. Returns the questions about the rest, and the statements that have to be described.
    fn missing(&self, wanted: &[Wanted], since: Asked) -> (Questions, Vec<Arc<Statement>>) {
        let (mut questions, mut undescribed) = (Questions::default(), Vec::new());
        for one in wanted {
            let (Wanted::Verdict(statement), Analysis::Candidate(candidate)) = (one, one.analysis()) else {
                continue;
            };
            match self.decide(statement, candidate, since) {
                Ok(_) => {}
                Err(Missing::Facts(missing)) => questions.add(missing),
                Err(Missing::Description) => undescribed.push(statement.clone()),
            }
        }
        (questions, undescribed)
    }

    /// Asks on the connection for questions. If that was lost while it was not used, another one is opened.
    async fn ask(
        &self,
        questions: &Questions,
        undescribed: &[Arc<Statement>],
        config: &Config,
    ) -> Result<(Answers, bool), held::Error> {
        let mut asking = self.begin_asking(config).await?;
        let mut answers = learn(&mut asking.asker, questions, undescribed).await;
        if asking.is_kept && answers.as_ref().is_err_and(Error::is_retryable) {
            asking = self.begin_asking(config).await?;
            answers = learn(&mut asking.asker, questions, undescribed).await;
        }
        let answers = answers?;
        self.end_asking(asking);
        Ok(answers)
    }

    /// Takes the connection for questions, or opens one.
    async fn begin_asking(&self, config: &Config) -> Result<Asking, held::Error> {
        let Some(database_use) = self.database_state().try_enter() else { return Err(held::Error::Paused) };
        let kept = self.judge.asker.lock().take();
        Ok(match kept.filter(|(generation, _)| database_use.may_reuse(*generation)) {
            Some((generation, mut asker)) => {
                asker.has_node_lanes = config.citus_lanes;
                Asking { asker, generation, is_kept: true, database_use }
            }
            None => {
                let asker = self.new_asker(config).await?;
                Asking { asker, generation: database_use.generation(), is_kept: false, database_use }
            }
        })
    }

    fn end_asking(&self, asking: Asking) {
        if asking.database_use.may_reuse(asking.generation) {
            *self.judge.asker.lock() = Some((asking.generation, asking.asker));
        }
    }
}

/// Asks these questions, and describes these statements. Returns whether a table of one of them is locked: it is not described yet.
async fn learn(
    asker: &mut Asker,
    questions: &Questions,
    undescribed: &[Arc<Statement>],
) -> Result<(Answers, bool), Error> {
    let answers = asker.answer(questions).await?;
    let mut is_locked = false;
    for statement in undescribed {
        match asker.upstream.describe(&statement.text, &statement.types).await {
            // Another question may have been faster.
            Ok(description) => drop(statement.description.set(description)),
            Err(error) if error.is_lock_timeout() => is_locked = true,
            Err(error) => return Err(error),
        }
    }
    Ok((answers, is_locked))
}

/// The connection for questions while it is used. A pause waits for its end.
struct Asking {
    asker: Asker,
    generation: u64,
    /// It was open before, and may be lost.
    is_kept: bool,
    database_use: DatabaseUse,
}
