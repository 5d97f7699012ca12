//! The statements that clients of one pool have sent: one entry per shape, with what the text says and what was
//! decided. Bounded by count and bytes; never asks the catalogue itself.

mod cache;
pub mod counts;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use hotrow_core::classify::{self, Analysis, Effect, LockStatement, Merging, Packing, Pass, Reason};
use hotrow_core::normalise::{self, Shape};
use hotrow_core::unit::Prepared;
use hotrow_wire::frontend::Parse;

use cache::{Generations, lookup};
use counts::Counts;

use crate::lock::Lock;

/// One statement, as it can be prepared on any connection of its pool.
#[derive(Debug)]
pub struct Statement {
    /// Its number.
    pub id: u64,
    /// Its name on upstream connections.
    pub name: Bytes,
    /// Its text.
    pub text: Bytes,
    /// Its declared parameter types, four bytes each.
    pub types: Bytes,
    /// The client has declared the types of all its parameters.
    pub is_typed: bool,
    /// It is a command that runs nothing but itself.
    pub is_plain: bool,
    /// It may give back advisory locks.
    pub unlocks: bool,
    /// It may be COPY FROM STDIN.
    pub may_copy: bool,
    /// What its text says.
    pub analysis: Analysis,
    /// What a candidate may leave behind where it is passed through.
    pub effect: Effect,
    /// Of a simple query that is several statements: these, each with the places of its literals in the whole.
    pub pieces: Box<[(Arc<Statement>, Range<usize>)]>,
    /// What was decided with the catalogue's help.
    decided: Lock<Option<VerdictRecord>>,
    /// Held while somebody asks the catalogue about it.
    pub deciding: tokio::sync::Mutex<()>,
    credit: AtomicI32,
    superseded: AtomicBool,
    proof: Lock<Option<(Proof, u64, Instant)>>,
    /// Somebody asks the catalogue for its proof.
    pub is_proving: AtomicBool,
    /// The types of its parameters and its columns, as the server described them when it was decided to be packed.
    pub description: OnceLock<Bytes>,
    /// What became of its runs.
    pub counts: Arc<Counts>,
}

/// A statement that a client has a name for.
#[derive(Clone, Debug)]
pub struct Named {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The number of the client's Parse among all of the pool's: a connection that has parsed the statement before may
    /// have it with older types.
    pub parsed: u64,
}

/// What is done with a statement.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It may be packed.
    Packed(Arc<Packing>),
    /// It is passed through.
    Pass,
}

/// What is known of what a statement leaves behind where it is passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Nothing but perhaps sequence values.
    pub is_clean: bool,
    /// It may move a sequence.
    pub moves_sequence: bool,
}

impl Proof {
    /// Nothing is known: whatever it reaches may leave anything behind.
    pub const NONE: Self = Proof { is_clean: false, moves_sequence: true };
}

/// What was decided about a statement, and when.
#[derive(Clone, Debug)]
pub struct VerdictRecord {
    verdict: Verdict,
    /// In words, where it is passed through.
    why_not: Option<String>,
    /// The state of the catalogue that it was decided for.
    state: u64,
    epoch: u64,
    at: Instant,
    /// Somebody is deciding it anew.
    is_asked_again: bool,
}

impl VerdictRecord {
    /// Decided just now, in this epoch of the catalogue.
    pub fn now(verdict: Verdict, why_not: Option<String>, state: u64, epoch: u64) -> Self {
        VerdictRecord { verdict, why_not, state, epoch, at: Instant::now(), is_asked_again: false }
    }
}

/// How much of a verdict is left.
pub enum CachedVerdict {
    /// It holds.
    Fresh(Verdict),
    /// It holds, but the catalogue should be asked again before it is too old.
    Ageing(Verdict),
    /// There is none, it is too old, or the catalogue has changed.
    Missing,
}

/// A statement that fails in a lane costs its whole batch another run. Each failure takes so much of its credit,
/// each success gives one back: one that fails more than one time in five is run on its own, until it has
/// recovered.
const CREDIT_MAX: i32 = 64;
const CREDIT_OF_FAILURE: i32 = 4;
/// What is left to a statement that took too long in a lane: others of its batch have waited for it, so that it is run on
/// its own this often before a lane tries it again.
const CREDIT_OF_SLOW: i32 = -1_000;
/// Credit below this is never earned back.
const CREDIT_OF_EXCLUDED: i32 = i32::MIN / 4;

/// Types that PostgreSQL brings along have lower numbers.
const FIRST_USER_OID: u32 = 16_384;

static IDS: AtomicU64 = AtomicU64::new(1);

impl Prepared for Statement {
    fn name(&self) -> &[u8] {
        &self.name
    }
}

impl Statement {
    fn new(text: Bytes, types: Bytes, analysis: Analysis) -> Self {
        let id = IDS.fetch_add(1, Relaxed);
        Statement {
            id,
            name: crate::server::upstream::statement_name(id).into(),
            is_typed: is_typed(&text, &types),
            is_plain: !matches!(analysis, Analysis::Candidate(_)) && is_plain(&text),
            unlocks: mentions(&text, b"pg_advisory_unlock"),
            may_copy: mentions(&text, b"copy"),
            text,
            types,
            effect: match &analysis {
                Analysis::Candidate(candidate) => candidate.effect(),
                _ => Effect::NONE,
            },
            analysis,
            pieces: Box::default(),
            decided: Lock::new(None),
            deciding: tokio::sync::Mutex::new(()),
            credit: AtomicI32::new(CREDIT_MAX),
            superseded: AtomicBool::new(false),
            proof: Lock::new(None),
            is_proving: AtomicBool::new(false),
            description: OnceLock::new(),
            counts: Arc::default(),
        }
    }

    /// The types of its parameters as the client has declared them.
    pub fn declared_types(&self) -> Vec<u32> {
        let oid = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        self.types.chunks_exact(4).map(oid).collect()
    }

    /// The Parse that prepares it under this name.
    pub fn put_parse(&self, name: &[u8], out: &mut BytesMut) {
        Parse { name, text: &self.text, types: &self.types }.put(out);
    }

    /// What was decided, if it is of this epoch of the catalogue.
    pub fn known(&self, epoch: u64, age_max: Duration) -> CachedVerdict {
        self.known_at(Instant::now(), epoch, age_max)
    }

    /// The same for somebody who knows the time.
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

    /// How it was last found to be packable, if it was.
    pub fn packing(&self) -> Option<Arc<Packing>> {
        match &*self.decided.lock() {
            Some(VerdictRecord { verdict: Verdict::Packed(packing), .. }) => Some(packing.clone()),
            _ => None,
        }
    }

    /// Its text without values, for people, in at most so many characters.
    pub fn shown(&self, chars_max: usize) -> String {
        normalise::without_values(&String::from_utf8_lossy(&self.text), chars_max)
    }

    /// What is done with it, and why, in words; nothing while that is not decided.
    pub fn explain(&self) -> Option<(&'static str, String)> {
        if self.credit.load(Relaxed) < CREDIT_OF_EXCLUDED {
            return Some((
                "passed",
                "its answers are too large, or its parameters of a user's type".to_owned(),
            ));
        }
        match &self.analysis {
            Analysis::Candidate(_) => {}
            Analysis::Pass(pass) => return Some(("passed", pass.reason.to_string())),
            _ => return Some(("answered here", "a command of the gateway's own".to_owned())),
        }
        let decided = self.decided.lock();
        decided.as_ref().map(|decided| match &decided.verdict {
            Verdict::Packed(packing) if packing.merging.is_some() => ("merged", packing.why.clone()),
            Verdict::Packed(packing) => ("packed", packing.why.clone()),
            Verdict::Pass => ("passed", decided.why_not.clone().unwrap_or_default()),
        })
    }

    /// Whether it leaves a transaction open, or ends one by COMMIT; none if it does neither.
    pub fn leaves_open(&self) -> Option<bool> {
        match &self.analysis {
            Analysis::Pass(pass) => pass.leaves_open,
            _ => None,
        }
    }

    /// Whether it is DEALLOCATE ALL, or does the same.
    pub fn takes_all(&self) -> bool {
        matches!(&self.analysis, Analysis::Pass(pass) if pass.clears.prepared)
    }

    /// What it takes away when it succeeds outside of a transaction block.
    pub fn clears(&self) -> Effect {
        match &self.analysis {
            Analysis::Pass(pass) => pass.clears,
            _ => Effect::NONE,
        }
    }

    /// The name of a prepared statement that it makes or takes away.
    pub fn mentions_name(&self) -> Option<&[u8]> {
        match &self.analysis {
            Analysis::Deallocate(name) => Some(name.as_bytes()),
            Analysis::Pass(pass) => pass.prepares.as_deref().map(str::as_bytes),
            _ => None,
        }
    }

    /// Whether it was found not to be packable.
    pub fn is_passed(&self) -> bool {
        match &self.analysis {
            Analysis::Candidate(_) => {
                let decided = self.decided.lock();
                matches!(&*decided, Some(VerdictRecord { verdict: Verdict::Pass, .. }))
            }
            _ => true,
        }
    }

    /// What is known of what it leaves behind, and whether the catalogue should be asked about it.
    pub fn proof(&self, epoch: u64, age_max: Duration) -> (Proof, bool) {
        match *self.proof.lock() {
            Some((proof, of, at)) if of == epoch && at.elapsed() < age_max => {
                (proof, at.elapsed() >= age_max / 2)
            }
            _ => (Proof::NONE, true),
        }
    }

    /// Notes what the catalogue says about what it leaves behind.
    pub fn prove(&self, proof: Proof, epoch: u64) {
        *self.proof.lock() = Some((proof, epoch, Instant::now()));
        self.is_proving.store(false, Relaxed);
    }

    /// Whether it was decided for another state of the catalogue than this.
    pub fn is_of_another_state(&self, state: u64) -> bool {
        let decided = self.decided.lock();
        decided.as_ref().is_some_and(|decided| decided.state != state)
    }

    /// Whether neither it nor a statement of its text is superseded.
    pub fn is_current(&self) -> bool {
        !self.is_superseded() && self.pieces.iter().all(|(piece, _)| !piece.is_superseded())
    }

    /// Whether the server describes both alike.
    pub fn is_described_as(&self, other: &Statement) -> bool {
        self.description.get().is_some_and(|own| other.description.get() == Some(own))
    }

    /// Whether the catalogue has changed since it was first understood: nobody prepares it any more.
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Relaxed)
    }

    /// Notes what was decided.
    pub fn decide(&self, decided: VerdictRecord) {
        *self.decided.lock() = Some(decided);
    }

    /// Notes that the catalogue is being asked again.
    pub fn ask_again(&self) {
        if let Some(decided) = &mut *self.decided.lock() {
            decided.is_asked_again = true;
        }
    }

    /// Whether it succeeds often enough to be packed.
    pub fn has_credit(&self) -> bool {
        self.credit.load(Relaxed) > 0
    }

    /// It succeeded, in a lane or on its own.
    pub fn succeeded(&self) {
        if self.credit.load(Relaxed) < CREDIT_MAX {
            self.credit.fetch_add(1, Relaxed);
        }
    }

    /// It failed and cost its batch another run.
    pub fn failed(&self) {
        let credit = self.credit.fetch_sub(CREDIT_OF_FAILURE, Relaxed);
        if (0..=CREDIT_OF_FAILURE).contains(&credit) {
            self.credit.store(-CREDIT_MAX / 2, Relaxed);
        }
    }

    /// It took too long in a lane.
    pub fn was_too_slow(&self) {
        self.credit.fetch_min(CREDIT_OF_SLOW, Relaxed);
    }

    /// Its answers are too large to be gathered: never packed again.
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
    /// What a client's name stands for that it gives to this statement now.
    pub fn named(&self, statement: Arc<Statement>) -> Named {
        Named { statement, parsed: 1 + self.parses.fetch_add(1, Relaxed) }
    }

    /// The number of the latest Parse of a client.
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
            let statement = Statement::new(text, types.freeze(), classify::analyse(shape.shape));
            match &statement.analysis {
                Analysis::Pass(Pass { reason: Reason::SeveralStatements, .. }) => self.in_pieces(statement),
                _ => Arc::new(statement),
            }
        })
    }

    /// Takes a text of several statements apart, if that can be done for sure.
    fn in_pieces(&self, statement: Statement) -> Arc<Statement> {
        let text = str::from_utf8(&statement.text).unwrap_or_default();
        let pieces = classify::pieces(text).unwrap_or_default().into_iter().map(|piece| {
            let literals = piece.first..piece.first + piece.count;
            // A parameter that is no literal's is the client's mistake, and the server's to report.
            let types = statement.types.get(4 * literals.start..4 * literals.end)?;
            Some((self.extended(piece.text.as_bytes(), types), literals))
        });
        let pieces = pieces.collect::<Option<_>>().unwrap_or_default();
        Arc::new(Statement { pieces, ..statement })
    }

    /// Whether the statement of a simple query's shape needs no look at its text.
    pub fn knows_simple(&self, shape: &Shape<'_>) -> bool {
        self.simple.lock().get(shape.signature).is_some()
    }

    /// Whether the statement of a Parse message needs no look at its text.
    pub fn knows_extended(&self, text: &[u8], types: &[u8]) -> bool {
        self.extended.lock().get(&extended_key(text, types)).is_some()
    }

    /// The statement of a Parse message. Text that is not UTF-8 is not understood.
    pub fn extended(&self, text: &[u8], types: &[u8]) -> Arc<Statement> {
        lookup(&self.extended, &extended_key(text, types), || {
            let analysis = classify::analyse(str::from_utf8(text).unwrap_or("\u{fffd}"));
            let statement =
                Statement::new(Bytes::copy_from_slice(text), Bytes::copy_from_slice(types), analysis);
            let statement = Arc::new(statement);
            if types.chunks_exact(4).any(|oid| oid >= &FIRST_USER_OID.to_be_bytes()[..]) {
                statement.exclude(); // what a parameter of a user's type brings with it, the text does not show
            }
            statement
        })
    }

    /// The catalogue has changed, and with it perhaps what a statement means: whoever asks for its text from now on gets
    /// another statement, which no connection has prepared.
    pub fn supersede(&self, statement: &Statement) {
        statement.superseded.store(true, Relaxed);
        if let Some(packing) = statement.packing() {
            let with_it = packing.lock_statement.as_ref().map(|ahead| self.ahead(ahead));
            let with_it =
                with_it.into_iter().chain(packing.merging.as_ref().map(|merging| self.merged(merging)));
            with_it.for_each(|statement| statement.superseded.store(true, Relaxed));
        }
    }

    /// The statement that a superseded one would be if it were prepared now. It stands for the other only if the server
    /// describes both alike: a prepared statement keeps the types of its parameters, and fails if its columns change.
    pub fn successor(&self, statement: &Statement) -> Arc<Statement> {
        self.extended(&statement.text, &statement.types)
    }

    /// All that are remembered.
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

/// Whether nothing but the command itself runs.
fn is_plain(text: &[u8]) -> bool {
    let reach = str::from_utf8(text).ok().and_then(classify::reach);
    reach.is_some_and(|reach| reach.names.is_empty())
}

/// Whether this word is somewhere in a text.
fn mentions(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Whether each parameter of a text has a declared type. A `$1` within a string counts as a parameter too.
fn is_typed(text: &[u8], types: &[u8]) -> bool {
    let parameters = text.split(|byte| *byte == b'$').skip(1).map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).take(6);
        digits.fold(0_usize, |number, digit| 10 * number + usize::from(digit - b'0'))
    });
    let declared =
        types.chunks_exact(4).take_while(|oid| !matches!(oid, [0, 0, 0, 0] | [0, 0, 2, 193])).count();
    parameters.max().unwrap_or(0) <= declared
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
    fn the_cache_is_bounded_and_keeps_what_is_used() {
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
        assert!(statement.explain().is_some_and(|(verdict, _)| verdict == "passed"), "it stays excluded");
    }

    #[test]
    fn a_statement_that_fails_often_loses_its_credit_and_earns_it_back() {
        let statement = Statements::default().extended(b"insert into t values ($1)", b"");
        for _ in 0..100 {
            (0..9).for_each(|_| statement.succeeded());
            statement.failed();
            assert!(statement.has_credit(), "one in ten is worth packing");
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
