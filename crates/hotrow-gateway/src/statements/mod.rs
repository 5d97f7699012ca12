//! The statements of a pool's clients: one entry per shape, with the analysis of the text and the verdict. Bounded by
//! count and bytes. It does not query the catalogue.

mod cache;
pub mod counts;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use hotrow_core::classify::{self, Analysis, Candidate, LockStatement, Merging, Pass, Reason};
use hotrow_core::normalise::{self, Shape};
use hotrow_core::session::{self, Pieces, Proof, RunOutcome, Statement as _, StatementInfo, Verdict};
use hotrow_core::unit::Prepared;
use hotrow_wire::split;

use cache::{Generations, lookup};
use counts::Counts;

use crate::lock::Lock;

/// One statement, as it can be prepared on any connection of its pool.
#[derive(Debug)]
pub struct Statement {
    info: StatementInfo<Statement>,
    /// The last verdict.
    decided: Lock<Option<VerdictRecord>>,
    /// Held while a task queries the catalogue about it.
    pub deciding: tokio::sync::Mutex<()>,
    credit: AtomicI32,
    superseded: AtomicBool,
    proof: Lock<Option<(Proof, u64, Instant)>>,
    /// The types of its parameters and its columns, as the server described them when the verdict was made.
    pub description: OnceLock<Bytes>,
    /// Counts of its runs by outcome.
    pub counts: Arc<Counts>,
}

/// A verdict about a statement, with its time.
#[derive(Clone, Debug)]
pub struct VerdictRecord {
    verdict: Verdict,
    /// The reason for passing it through, in words.
    why_not: Option<WhyNot>,
    /// The state of the catalogue at that time.
    state: u64,
    epoch: u64,
    at: Instant,
    /// Whether a task is deciding again.
    is_asked_again: bool,
}

impl VerdictRecord {
    /// A verdict made now, in this epoch of the catalogue.
    pub fn now(verdict: Verdict, why_not: Option<WhyNot>, state: u64, epoch: u64) -> Self {
        VerdictRecord { verdict, why_not, state, epoch, at: Instant::now(), is_asked_again: false }
    }
}

/// Why a statement is passed through.
#[derive(Clone, Debug)]
pub struct WhyNot {
    /// The reason in words.
    pub reason: String,
    /// A form that can be packed, if there is one.
    pub remedy: Option<&'static str>,
}

impl From<&Reason> for WhyNot {
    fn from(reason: &Reason) -> Self {
        WhyNot { reason: reason.to_string(), remedy: reason.remedy() }
    }
}

/// A verdict in words.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// `packed`, `merged`, `passed` or `answered here`.
    pub verdict: &'static str,
    /// The reason.
    pub reason: String,
    /// A form that can be packed, if the statement is passed through and there is one.
    pub remedy: Option<&'static str>,
}

impl Explanation {
    /// A verdict without a remedy.
    pub fn new(verdict: &'static str, reason: impl Into<String>) -> Self {
        Explanation { verdict, reason: reason.into(), remedy: None }
    }
}

impl From<WhyNot> for Explanation {
    fn from(why: WhyNot) -> Self {
        Explanation { verdict: "passed", reason: why.reason, remedy: why.remedy }
    }
}

/// The validity of a verdict.
pub enum CachedVerdict {
    /// It is valid.
    Fresh(Verdict),
    /// It is valid, but the catalogue should be queried again before it expires.
    Ageing(Verdict),
    /// There is none, it has expired, or the catalogue has changed.
    Missing,
}

/// A statement that fails in a lane makes its whole batch run again. Each failure takes this much of its credit, and
/// each success returns one. A statement that fails more than one time in five is passed through until it has
/// recovered.
const CREDIT_MAX: i32 = 64;
const CREDIT_OF_FAILURE: i32 = 4;
/// The credit of a statement that took too long in a lane, where the other units of its batch had to wait. It is passed
/// through this often before a lane tries it again.
const CREDIT_OF_SLOW: i32 = -1_000;
/// A credit below this is never earned back.
const CREDIT_OF_EXCLUDED: i32 = i32::MIN / 4;

/// The OIDs of PostgreSQL's own types are lower.
const FIRST_USER_OID: u32 = 16_384;

static IDS: AtomicU64 = AtomicU64::new(1);

impl Deref for Statement {
    type Target = StatementInfo<Statement>;

    fn deref(&self) -> &StatementInfo<Statement> {
        &self.info
    }
}

impl Prepared for Statement {
    fn name(&self) -> &[u8] {
        &self.name
    }
}

impl session::Statement for Statement {
    fn last_verdict(&self) -> Option<Verdict> {
        self.decided.lock().as_ref().map(|decided| decided.verdict.clone())
    }

    fn has_credit(&self) -> bool {
        self.credit.load(Relaxed) > 0
    }

    fn succeeded(&self) {
        if self.credit.load(Relaxed) < CREDIT_MAX {
            self.credit.fetch_add(1, Relaxed);
        }
    }

    fn is_superseded(&self) -> bool {
        self.superseded.load(Relaxed)
    }

    fn is_described_as(&self, other: &Statement) -> bool {
        self.description.get().is_some_and(|own| other.description.get() == Some(own))
    }

    fn parameter_types(&self) -> Option<Bytes> {
        let description = self.description.get()?;
        let frame = split(description, |_| usize::MAX).ok().flatten()?;
        frame.body().get(2..).map(|types| description.slice_ref(types))
    }

    fn count(&self, outcome: RunOutcome) {
        self.counts.add(outcome);
    }
}

impl Statement {
    fn new(info: StatementInfo<Statement>) -> Self {
        Statement {
            info,
            decided: Lock::new(None),
            deciding: tokio::sync::Mutex::new(()),
            credit: AtomicI32::new(CREDIT_MAX),
            superseded: AtomicBool::new(false),
            proof: Lock::new(None),
            description: OnceLock::new(),
            counts: Arc::default(),
        }
    }

    /// The statement of a Parse message.
    fn extended(info: StatementInfo<Statement>) -> Self {
        let statement = Statement::new(info);
        if statement.types.chunks_exact(4).any(|oid| oid >= &FIRST_USER_OID.to_be_bytes()[..]) {
            statement.exclude(); // the text does not show the code of a user's type
        }
        statement
    }

    /// The parameter types that the client has declared. If an argument of a call is an expression, the types that the
    /// server has given the parameters.
    pub fn known_types(&self, candidate: &Candidate) -> Vec<u32> {
        let oid = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        let described = self.parameter_types().filter(|_| candidate.has_computed_argument());
        described.unwrap_or_else(|| self.types.clone()).chunks_exact(4).map(oid).collect()
    }

    /// The verdict, if it belongs to this epoch of the catalogue.
    pub fn known(&self, epoch: u64, age_max: Duration) -> CachedVerdict {
        self.known_at(Instant::now(), epoch, age_max)
    }

    /// The same for a caller that knows the time.
    pub fn known_at(&self, now: Instant, epoch: u64, age_max: Duration) -> CachedVerdict {
        match &*self.decided.lock() {
            Some(decided) if decided.epoch == epoch => {
                let age = now.saturating_duration_since(decided.at);
                if age >= age_max {
                    CachedVerdict::Missing
                } else if age >= age_max / 2 && !decided.is_asked_again {
                    CachedVerdict::Ageing(decided.verdict.clone())
                } else {
                    CachedVerdict::Fresh(decided.verdict.clone())
                }
            }
            _ => CachedVerdict::Missing,
        }
    }

    /// Its text without values for the console, with at most this many characters.
    pub fn shown(&self, chars_max: usize) -> String {
        normalise::without_values(&String::from_utf8_lossy(&self.text), chars_max)
    }

    /// Its verdict in words; none while it has no verdict.
    pub fn explain(&self) -> Option<Explanation> {
        if self.credit.load(Relaxed) < CREDIT_OF_EXCLUDED {
            let reason = "its answers are too large, or its parameters of a user's type";
            return Some(Explanation::new("passed", reason));
        }
        match &self.analysis {
            Analysis::Candidate(_) => {}
            Analysis::Pass(pass) => return Some(WhyNot::from(&pass.reason).into()),
            _ => return Some(Explanation::new("answered here", "a command of the gateway's own")),
        }
        let decided = self.decided.lock();
        decided.as_ref().map(|decided| match (&decided.verdict, &decided.why_not) {
            (Verdict::Packed(packing), _) if packing.merging.is_some() => {
                Explanation::new("merged", &packing.why)
            }
            (Verdict::Packed(packing), _) => Explanation::new("packed", &packing.why),
            (Verdict::Pass | Verdict::Locks(_), Some(why)) => why.clone().into(),
            (Verdict::Pass | Verdict::Locks(_), None) => Explanation::new("passed", ""),
        })
    }

    /// The state that it is known to leave behind, and whether the catalogue should be queried about it.
    pub fn proof(&self, epoch: u64, age_max: Duration) -> (Proof, bool) {
        match *self.proof.lock() {
            Some((proof, of, at)) if of == epoch && at.elapsed() < age_max => {
                (proof, at.elapsed() >= age_max / 2)
            }
            _ => (Proof::NONE, true),
        }
    }

    /// Notes the catalogue's facts about the state that it leaves behind.
    pub fn prove(&self, proof: Proof, epoch: u64) {
        *self.proof.lock() = Some((proof, epoch, Instant::now()));
    }

    /// Whether its verdict belongs to another state of the catalogue.
    pub fn is_of_another_state(&self, state: u64) -> bool {
        let decided = self.decided.lock();
        decided.as_ref().is_some_and(|decided| decided.state != state)
    }

    /// Notes a verdict.
    pub fn decide(&self, decided: VerdictRecord) {
        *self.decided.lock() = Some(decided);
    }

    /// Notes that the catalogue is being queried again.
    pub fn ask_again(&self) {
        if let Some(decided) = &mut *self.decided.lock() {
            decided.is_asked_again = true;
        }
    }

    /// Notes a failure that made its batch run again.
    pub fn failed(&self) {
        let credit = self.credit.fetch_sub(CREDIT_OF_FAILURE, Relaxed);
        if (0..=CREDIT_OF_FAILURE).contains(&credit) {
            self.credit.store(-CREDIT_MAX / 2, Relaxed);
        }
    }

    /// Notes that it took too long in a lane.
    pub fn was_too_slow(&self) {
        self.credit.fetch_min(CREDIT_OF_SLOW, Relaxed);
    }

    /// Excludes it from packing for ever.
    pub fn exclude(&self) {
        self.credit.store(i32::MIN / 2, Relaxed);
    }
}

/// All statements of a pool.
#[derive(Debug, Default)]
pub struct Statements {
    simple: Lock<Generations>,
    extended: Lock<Generations>,
    parses: AtomicU64,
}

impl Statements {
    /// The number of a client's new Parse.
    pub fn next_parse(&self) -> u64 {
        1 + self.parses.fetch_add(1, Relaxed)
    }

    /// The number of the last Parse of a client.
    pub fn last_parse(&self) -> u64 {
        self.parses.load(Relaxed)
    }

    /// The statement of a simple query's shape.
    pub fn simple(&self, shape: &Shape<'_>) -> Arc<Statement> {
        lookup(&self.simple, shape.signature, || {
            let types = shape.literals().fold(BytesMut::new(), |mut types, literal| {
                types.put_u32(literal.type_oid);
                types
            });
            let text = Bytes::copy_from_slice(shape.shape.as_bytes());
            let mut info = info(text, types.freeze(), classify::analyse(shape.shape));
            if let Analysis::Pass(Pass { reason: Reason::SeveralStatements, .. }) = &info.analysis {
                info.pieces = self.pieces(&info).unwrap_or_default();
            }
            Arc::new(Statement::new(info))
        })
    }

    /// The statements of a text of several, if the split is certain.
    fn pieces(&self, info: &StatementInfo<Statement>) -> Option<Pieces<Statement>> {
        let pieces = classify::pieces(str::from_utf8(&info.text).ok()?)?.into_iter().map(|piece| {
            let literals = piece.first..piece.first + piece.count;
            // A parameter that is not a literal is the client's error, and the server reports it.
            let types = info.types.get(4 * literals.start..4 * literals.end)?;
            Some((self.extended(piece.text.as_bytes(), types), literals))
        });
        pieces.collect()
    }

    /// Whether the statement of a simple query's shape is cached.
    pub fn knows_simple(&self, shape: &Shape<'_>) -> bool {
        self.simple.lock().get(shape.signature).is_some()
    }

    /// Whether the statement of a Parse message is cached.
    pub fn knows_extended(&self, text: &[u8], types: &[u8]) -> bool {
        self.extended.lock().get(&extended_key(text, types)).is_some()
    }

    /// The statement of a Parse message. Text that is not UTF-8 is not analysed.
    pub fn extended(&self, text: &[u8], types: &[u8]) -> Arc<Statement> {
        lookup(&self.extended, &extended_key(text, types), || {
            let analysis = classify::analyse(str::from_utf8(text).unwrap_or("\u{fffd}"));
            let info = info(Bytes::copy_from_slice(text), Bytes::copy_from_slice(types), analysis);
            Arc::new(Statement::extended(info))
        })
    }

    /// The same statement with these declared types. It is not analysed again.
    pub fn with_types(&self, statement: &Statement, types: &Bytes) -> Arc<Statement> {
        lookup(&self.extended, &extended_key(&statement.text, types), || {
            let id = IDS.fetch_add(1, Relaxed);
            Arc::new(Statement::extended(statement.info.with_types(id, types.clone())))
        })
    }

    /// The catalogue has changed, and maybe the meaning of the statement. From now on its text gives another statement,
    /// which no connection has prepared.
    pub fn supersede(&self, statement: &Statement) {
        statement.superseded.store(true, Relaxed);
        if let Some(packing) = statement.packing() {
            let with_it = packing.lock_statement.as_ref().map(|ahead| self.ahead(ahead));
            let with_it =
                with_it.into_iter().chain(packing.merging.as_ref().map(|merging| self.merged(merging)));
            with_it.for_each(|statement| statement.superseded.store(true, Relaxed));
        }
    }

    /// The statement that a superseded one would be if it were prepared now. It can replace the other only if the
    /// server describes both in the same way: a prepared statement keeps the types of its parameters, and fails if its
    /// columns change.
    pub fn successor(&self, statement: &Statement) -> Arc<Statement> {
        self.extended(&statement.text, &statement.types)
    }

    /// All cached statements.
    pub fn all(&self) -> Vec<Arc<Statement>> {
        let of = |cache: &Lock<Generations>| -> Vec<Arc<Statement>> {
            let cache = cache.lock();
            cache.young.values().chain(cache.old.values()).cloned().collect()
        };
        let mut all = of(&self.simple);
        all.extend(of(&self.extended));
        all
    }

    /// The statement that locks a row ahead.
    pub fn ahead(&self, ahead: &LockStatement) -> Arc<Statement> {
        let types: Vec<u8> = ahead.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        self.extended(ahead.text.as_bytes(), &types)
    }

    /// The statement that calls a merge rule's twin.
    pub fn merged(&self, merging: &Merging) -> Arc<Statement> {
        let types: Vec<u8> = merging.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        self.extended(merging.text.as_bytes(), &types)
    }
}

/// The facts about a new statement.
fn info(text: Bytes, types: Bytes, analysis: Analysis) -> StatementInfo<Statement> {
    StatementInfo::new(IDS.fetch_add(1, Relaxed), text, types, analysis)
}

fn extended_key(text: &[u8], types: &[u8]) -> Vec<u8> {
    [text, b"\0", types].concat()
}

#[cfg(test)]
mod tests {
    use hotrow_core::normalise::Normaliser;

    use hotrow_core::limits;

    use super::*;

    #[test]
    fn every_text_of_one_shape_is_one_statement() {
        let statements = Statements::default();
        let mut normaliser = Normaliser::new();
        let one = statements.simple(&normaliser.run("update t set a = 1 where id = 5"));
        let other = statements.simple(&normaliser.run("update t set a = 2 where id = 67;"));
        let third = statements.simple(&normaliser.run("update t set a = 2 where id = 'x'"));
        assert_eq!(one.id, other.id);
        assert_ne!(one.id, third.id);
        assert_eq!(one.types, [0, 0, 0, 23, 0, 0, 0, 23][..]);
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_used_statements() {
        let statements = Statements::default();
        let kept = statements.extended(b"select 0", b"").id;
        for i in 1..limits::SHAPES_MAX * 3 {
            statements.extended(format!("select {i}").as_bytes(), b"");
            if i % 1000 == 0 {
                assert_eq!(statements.extended(b"select 0", b"").id, kept);
            }
        }
        let cache = statements.extended.lock();
        assert!(cache.young.len() <= limits::SHAPES_MAX && cache.old.len() <= limits::SHAPES_MAX);
    }

    #[test]
    fn parameters_of_user_types_are_not_packed() {
        let statements = Statements::default();
        assert!(statements.extended(b"select $1", &23u32.to_be_bytes()).has_credit());
        assert!(!statements.extended(b"select $1", &16_385u32.to_be_bytes()).has_credit());
    }

    #[test]
    fn a_statement_that_took_too_long_is_tried_again_after_a_thousand_runs() {
        let statement = Statements::default().extended(b"select 1", b"");
        statement.was_too_slow();
        for _ in 0..1_000 {
            assert!(!statement.has_credit());
            statement.succeeded();
        }
        statement.succeeded();
        assert!(statement.has_credit());
        statement.exclude();
        statement.was_too_slow();
        assert!(
            statement.explain().is_some_and(|explained| explained.verdict == "passed"),
            "the statement stays excluded"
        );
    }

    #[test]
    fn a_statement_that_fails_often_loses_its_credit_and_earns_it_back() {
        let statement = Statements::default().extended(b"insert into t values ($1)", b"");
        for _ in 0..100 {
            (0..9).for_each(|_| statement.succeeded());
            statement.failed();
            assert!(statement.has_credit(), "one failure in ten does not exclude the statement");
        }
        (0..40).for_each(|_| statement.failed());
        assert!(!statement.has_credit());
        (0..1000).for_each(|_| statement.succeeded());
        assert!(statement.has_credit());
        statement.exclude();
        (0..1000).for_each(|_| statement.succeeded());
        assert!(!statement.has_credit());
    }
}
