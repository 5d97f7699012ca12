//! The statements that clients of one pool have sent: one entry per shape, with what the text says and what was
//! decided. Bounded by count and bytes; never asks the catalogue itself.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use hotrow_core::classify::{self, Ahead, Analysis, Boundary, Effect, Merging, Packing, Pass, Reason};
use hotrow_core::limits;
use hotrow_core::normalise::{self, Shape};
use hotrow_wire::frontend::Parse;

use crate::counts::Counts;

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
    /// What its text says.
    pub analysis: Analysis,
    /// What a candidate may leave behind where it is passed through.
    pub effect: Effect,
    /// Of a simple query that is several statements: these, each with the places of its literals in the whole.
    pub pieces: Box<[(Arc<Statement>, Range<usize>)]>,
    /// What was decided with the catalogue's help.
    decided: Mutex<Option<Decided>>,
    /// Held while somebody asks the catalogue about it.
    pub deciding: tokio::sync::Mutex<()>,
    credit: AtomicI32,
    /// What became of its runs.
    pub counts: Counts,
}

/// What is done with a statement.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It may be packed.
    Packed(Arc<Packing>),
    /// It is passed through.
    Pass,
}

#[derive(Clone, Debug)]
struct Decided {
    verdict: Verdict,
    /// In words, where it is passed through.
    why_not: Option<String>,
    epoch: u64,
    at: Instant,
}

/// How much of a verdict is left.
pub enum Known {
    /// It holds.
    Fresh(Verdict),
    /// It holds for now, but the catalogue should be asked again.
    Old(Verdict),
    /// There is none, or the catalogue has changed.
    No,
}

/// A statement that fails in a lane costs its whole batch another run. Each failure takes so much of its credit,
/// each success gives one back: one that fails more than one time in five is run on its own, until it has
/// recovered.
const CREDIT_MAX: i32 = 64;
const CREDIT_OF_FAILURE: i32 = 4;

/// Types that PostgreSQL brings along have lower numbers.
const FIRST_USER_OID: u32 = 16_384;

static IDS: AtomicU64 = AtomicU64::new(1);

impl Statement {
    fn new(text: Bytes, types: Bytes, analysis: Analysis) -> Self {
        let id = IDS.fetch_add(1, Relaxed);
        Statement {
            id,
            name: crate::upstream::statement_name(id).into(),
            text,
            types,
            effect: match &analysis {
                Analysis::Candidate(candidate) => candidate.effect(),
                _ => Effect::NONE,
            },
            analysis,
            pieces: Box::default(),
            decided: Mutex::new(None),
            deciding: tokio::sync::Mutex::new(()),
            credit: AtomicI32::new(CREDIT_MAX),
            counts: Counts::default(),
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
    pub fn known(&self, epoch: u64, age_max: Duration) -> Known {
        self.known_at(Instant::now(), epoch, age_max)
    }

    /// The same for somebody who knows the time.
    pub fn known_at(&self, now: Instant, epoch: u64, age_max: Duration) -> Known {
        match &*self.decided.lock().expect("nothing panics while it holds a verdict") {
            Some(decided) if decided.epoch == epoch => {
                let verdict = decided.verdict.clone();
                if now.saturating_duration_since(decided.at) < age_max {
                    Known::Fresh(verdict)
                } else {
                    Known::Old(verdict)
                }
            }
            _ => Known::No,
        }
    }

    /// How it was last found to be packable, if it was.
    pub fn packing(&self) -> Option<Arc<Packing>> {
        match &*self.decided.lock().expect("nothing panics while it holds a verdict") {
            Some(Decided { verdict: Verdict::Packed(packing), .. }) => Some(packing.clone()),
            _ => None,
        }
    }

    /// Its text without values, for people, in at most so many characters.
    pub fn shown(&self, chars_max: usize) -> String {
        normalise::without_values(&String::from_utf8_lossy(&self.text), chars_max)
    }

    /// What is done with it, and why, in words; nothing while that is not decided.
    pub fn explain(&self) -> Option<(&'static str, String)> {
        if self.credit.load(Relaxed) < -CREDIT_MAX {
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
        let decided = self.decided.lock().expect("nothing panics while it holds a verdict");
        decided.as_ref().map(|decided| match &decided.verdict {
            Verdict::Packed(packing) if packing.merging.is_some() => ("merged", packing.why.clone()),
            Verdict::Packed(packing) => ("packed", packing.why.clone()),
            Verdict::Pass => ("passed", decided.why_not.clone().unwrap_or_default()),
        })
    }

    /// Whether it leaves a transaction open, or ends one by COMMIT; none if it does neither.
    pub fn leaves_open(&self) -> Option<bool> {
        let Analysis::Pass(Pass { reason, boundary, .. }) = &self.analysis else { return None };
        if reason.is_begin() {
            return Some(true);
        }
        let of_pieces = self.pieces.iter().rev().find_map(|(piece, _)| piece.leaves_open());
        if *boundary == Some(Boundary::Commit) { Some(false) } else { of_pieces }
    }

    /// Whether it was found not to be packable.
    pub fn is_passed(&self) -> bool {
        match &self.analysis {
            Analysis::Candidate(_) => {
                let decided = self.decided.lock().expect("nothing panics while it holds a verdict");
                matches!(&*decided, Some(Decided { verdict: Verdict::Pass, .. }))
            }
            _ => true,
        }
    }

    /// Notes what was decided, and why where it is passed through.
    pub fn decide(&self, verdict: Verdict, why_not: Option<String>, epoch: u64) {
        let decided = Decided { verdict, why_not, epoch, at: Instant::now() };
        *self.decided.lock().expect("nothing panics while it holds a verdict") = Some(decided);
    }

    /// Takes an old verdict as new, while somebody asks again.
    pub fn renew(&self) {
        if let Some(decided) = &mut *self.decided.lock().expect("nothing panics while it holds a verdict") {
            decided.at = Instant::now();
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

    /// Its answers are too large to be gathered: never packed again.
    pub fn exclude(&self) {
        self.credit.store(i32::MIN / 2, Relaxed);
    }
}

/// All statements of a pool.
#[derive(Debug, Default)]
pub struct Statements {
    simple: Mutex<Generations>,
    extended: Mutex<Generations>,
}

impl Statements {
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

    /// The statement of a Parse message. Text that is not UTF-8 is not understood.
    pub fn extended(&self, text: &[u8], types: &[u8]) -> Arc<Statement> {
        let mut key = Vec::with_capacity(text.len() + types.len() + 1);
        key.extend_from_slice(text);
        key.push(0);
        key.extend_from_slice(types);
        lookup(&self.extended, &key, || {
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

    /// All that are remembered.
    pub fn all(&self) -> Vec<Arc<Statement>> {
        let of = |cache: &Mutex<Generations>| -> Vec<Arc<Statement>> {
            let cache = cache.lock().expect("nothing panics while it holds the statements");
            cache.young.values().chain(cache.old.values()).cloned().collect()
        };
        let mut all = of(&self.simple);
        all.extend(of(&self.extended));
        all
    }

    /// The statement that locks a row ahead.
    pub fn ahead(&self, ahead: &Ahead) -> Arc<Statement> {
        let types: Vec<u8> = ahead.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        self.extended(ahead.text.as_bytes(), &types)
    }

    /// The statement that calls a merge rule's twin.
    pub fn merged(&self, merging: &Merging) -> Arc<Statement> {
        let types: Vec<u8> = merging.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        self.extended(merging.text.as_bytes(), &types)
    }
}

fn lookup(cache: &Mutex<Generations>, key: &[u8], make: impl FnOnce() -> Arc<Statement>) -> Arc<Statement> {
    let lock = || cache.lock().expect("nothing panics while it holds the statements");
    if let Some(statement) = lock().get(key) {
        return statement;
    }
    let statement = make(); // outside the lock: parsing takes a while
    lock().insert(key, statement)
}

/// A cache of two generations: when the young one is full it becomes the old one, and what was not asked for in a
/// whole generation is gone. Clients that still use a forgotten statement keep it by themselves.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<[u8]>, Arc<Statement>>,
    old: HashMap<Box<[u8]>, Arc<Statement>>,
    young_bytes: usize,
}

impl Generations {
    fn get(&mut self, key: &[u8]) -> Option<Arc<Statement>> {
        if let Some(statement) = self.young.get(key) {
            return Some(statement.clone());
        }
        let statement = self.old.remove(key)?;
        Some(self.insert(key, statement))
    }

    /// The entry for this key: the one given, unless somebody was faster.
    fn insert(&mut self, key: &[u8], statement: Arc<Statement>) -> Arc<Statement> {
        if self.young.len() >= limits::SHAPES_MAX || self.young_bytes > limits::SHAPES_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += key.len() + statement.text.len();
        self.young.entry(key.into()).or_insert(statement).clone()
    }
}

#[cfg(test)]
mod tests {
    use hotrow_core::normalise::Normaliser;

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
        let cache = statements.extended.lock().unwrap();
        assert!(cache.young.len() <= limits::SHAPES_MAX && cache.old.len() <= limits::SHAPES_MAX);
    }

    #[test]
    fn parameters_of_user_types_are_not_packed() {
        let statements = Statements::default();
        assert!(statements.extended(b"select $1", &23u32.to_be_bytes()).has_credit());
        assert!(!statements.extended(b"select $1", &16_385u32.to_be_bytes()).has_credit());
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
