//! The statements of a pool's clients: one entry per shape, with the analysis of the text and the verdict. Bounded by
//! count and bytes. It does not query the catalog.

mod cache;
pub mod counts;
mod record;
mod reply;
#[cfg(test)]
mod tests;
mod verdicts;

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use hotrow_connect::description::{are_alike, parameter_types};
use hotrow_connect::lock::Lock;
use hotrow_core::classify::{
    self, Analysis, Candidate, LockStatement, Merging, Names, Packing, Pass, Reason, Watch,
    differ_in_tables_only,
};
use hotrow_core::normalise::{self, Shape};
use hotrow_core::session::{
    self, OutcomeOfSets, Pieces, Proof, RunOutcome, Statement as _, StatementInfo, Verdict,
};
use hotrow_core::unit::Prepared;
use tokio::sync::Notify;

use cache::{Generations, lookup};
use record::Records;
pub use record::RunRecord;
use reply::KnownReply;
pub use verdicts::{CachedVerdict, Explanation, NodeRecord, NodeState, VerdictRecord, WhyNot};

/// One statement, as it can be prepared on any connection of its pool.
#[derive(Debug)]
pub struct Statement {
    info: StatementInfo<Statement>,
    /// Clients can give it names: it comes from a Parse message.
    is_named: bool,
    /// A parameter has a type of a user. The text does not show the code of such a type, so it never runs in a lane.
    has_user_types: bool,
    /// The last verdict.
    decided: Lock<Option<VerdictRecord>>,
    /// It waits until the catalog is asked for a verdict, or for the proof below.
    pub awaits_verdict: AtomicBool,
    pub awaits_proof: AtomicBool,
    /// The catalog was asked for a verdict, with or without success.
    pub was_judged: Notify,
    superseded: AtomicBool,
    proof: Lock<Option<(Proof, u64, Instant)>>,
    /// The names of the code that it can reach, if that is known to leave nothing.
    reached: Lock<Option<Names>>,
    /// What is known of it on the nodes of a distributed database.
    nodes: Lock<Vec<NodeRecord>>,
    /// The types of its parameters and its columns, as the server described them when the verdict was made. None if the server
    /// cannot describe it.
    pub description: OnceLock<Option<Bytes>>,
    /// What it does to the settings of the pool's sessions, if it has nothing but SETs and that is known.
    outcome_of_sets: OnceLock<OutcomeOfSets>,
    /// The server's reply in the pool, if it only clears state.
    reply: Lock<Option<KnownReply>>,
    /// What its runs have shown, and those of the statements that differ from it only in values.
    pub record: Arc<RunRecord>,
}

/// The OIDs of PostgreSQL's own types are lower.
const FIRST_USER_OID: u32 = 16_384;

static IDS: AtomicU64 = AtomicU64::new(1);

/// The number of the last Parse of a client. Connections move between pools, so all pools count together.
static PARSES: AtomicU64 = AtomicU64::new(0);

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
        !self.has_user_types && self.record.has_credit()
    }

    fn succeeded(&self) {
        self.record.succeeded();
    }

    fn is_superseded(&self) -> bool {
        self.superseded.load(Relaxed)
    }

    fn is_described_as(&self, other: &Statement) -> bool {
        // Both have the same text and the same declared types.
        if self.is_described_by_text() {
            return true;
        }
        let described = |statement: &Statement| statement.description.get().cloned().flatten();
        let both = described(self).zip(described(other));
        both.is_some_and(|(own, other)| are_alike(&own, &other))
    }

    fn parameter_types(&self) -> Option<Bytes> {
        let Some(Some(description)) = self.description.get() else {
            return self.is_typed.then(|| self.types.clone());
        };
        parameter_types(description)
    }

    fn count(&self, outcome: RunOutcome) {
        self.record.count(outcome);
    }

    fn outcome_of_sets(&self) -> Option<&OutcomeOfSets> {
        self.outcome_of_sets.get()
    }

    fn learn_sets(&self, outcome: OutcomeOfSets) {
        let _ = self.outcome_of_sets.set(outcome); // another session may have learned the same
    }
}

impl Statement {
    fn new(info: StatementInfo<Statement>, records: &Records) -> Self {
        Statement {
            record: records.of(&info.text, &info.types),
            info,
            is_named: false,
            has_user_types: false,
            decided: Lock::new(None),
            awaits_verdict: AtomicBool::new(false),
            awaits_proof: AtomicBool::new(false),
            was_judged: Notify::new(),
            superseded: AtomicBool::new(false),
            proof: Lock::new(None),
            reached: Lock::default(),
            nodes: Lock::default(),
            description: OnceLock::new(),
            outcome_of_sets: OnceLock::new(),
            reply: Lock::default(),
        }
    }

    /// The statement of a Parse message.
    fn extended(info: StatementInfo<Statement>, records: &Records) -> Self {
        let is_of_user = |oid: &[u8]| oid >= &FIRST_USER_OID.to_be_bytes()[..];
        let has_user_types = info.types.chunks_exact(4).any(is_of_user);
        Statement { is_named: true, has_user_types, ..Statement::new(info, records) }
    }

    /// The parameter types that the client has declared. If they do not suffice, the types that the server has given the
    /// parameters.
    pub fn known_types(&self, candidate: &Candidate) -> Vec<u32> {
        let oid = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        let described = self.parameter_types().filter(|_| candidate.needs_description());
        described.unwrap_or_else(|| self.types.clone()).chunks_exact(4).map(oid).collect()
    }

    /// Whether every unit with it is known to be passed through. A superseded one may be another statement now, which is packed.
    pub fn passes(&self, now: Instant, epoch: u64, age_max: Duration) -> bool {
        match &self.analysis {
            Analysis::Candidate(_) if self.is_superseded() => false,
            Analysis::Candidate(_) if !self.has_credit() => true,
            Analysis::Candidate(_) => {
                let known = self.known_at(now, epoch, age_max);
                matches!(known, CachedVerdict::Fresh(Verdict::Pass | Verdict::Locks(_)))
            }
            Analysis::Pass(pass) => pass.block_command.is_none(),
            _ => false,
        }
    }

    /// The verdict, if it belongs to this epoch of the catalog.
    pub fn known(&self, epoch: u64, age_max: Duration) -> CachedVerdict {
        self.known_at(Instant::now(), epoch, age_max)
    }

    /// The same for a caller that knows the time.
    pub fn known_at(&self, now: Instant, epoch: u64, age_max: Duration) -> CachedVerdict {
        match &*self.decided.lock() {
            // The batch that runs it next checks its tables, and a batch under another definition is rolled back.
            Some(decided)
                if decided.is_checked
                    && decided.epoch != epoch
                    && differ_in_tables_only(decided.epoch, epoch)
                    && now.saturating_duration_since(decided.at) < age_max =>
            {
                CachedVerdict::Ageing(decided.verdict.clone())
            }
            Some(decided) if decided.epoch == epoch => {
                let age = now.saturating_duration_since(decided.at);
                if age >= age_max {
                    CachedVerdict::Missing
                } else if age >= age_max / 2 {
                    CachedVerdict::Ageing(decided.verdict.clone())
                } else {
                    CachedVerdict::Fresh(decided.verdict.clone())
                }
            }
            _ => CachedVerdict::Missing,
        }
    }

    /// Its packing, if the verdict belongs to this epoch of the catalog and is not too old.
    pub fn packing_in(&self, epoch: u64, age_max: Duration) -> Option<Arc<Packing>> {
        let decided = self.decided.lock();
        let decided =
            decided.as_ref().filter(|decided| decided.epoch == epoch && decided.at.elapsed() < age_max)?;
        match &decided.verdict {
            Verdict::Packed(packing) => Some(packing.clone()),
            Verdict::Pass | Verdict::Locks(_) => None,
        }
    }

    /// Its text without values for the console, with at most this many characters.
    pub fn shown(&self, chars_max: usize) -> String {
        normalise::without_values(&String::from_utf8_lossy(&self.text), chars_max)
    }

    /// The server's reply, if it only clears state and the reply can be repeated in this epoch of the catalog.
    pub fn known_reply(&self, epoch: u64, age_max: Duration) -> Option<Bytes> {
        self.reply.lock().as_mut()?.repeat(epoch, Instant::now(), age_max)
    }

    /// Notes the server's reply in this epoch, or that it is not repeated.
    pub fn learn_reply(&self, reply: Option<Bytes>, epoch: u64) {
        *self.reply.lock() = reply.map(|reply| KnownReply::new(reply, epoch));
    }

    /// Whether it has a verdict, which may have expired.
    pub fn is_decided(&self) -> bool {
        !matches!(&self.analysis, Analysis::Candidate(_)) || self.decided.lock().is_some()
    }

    /// Its verdict in words; none while it has no verdict.
    pub fn explain(&self) -> Option<Explanation> {
        if self.has_user_types || self.record.is_excluded() {
            let reason = "its answers are too large, its parameters are of a user's type, or its function has left state in a lane";
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

    /// Whether it can run in the lanes of this node, in this epoch of the catalog.
    pub fn at_node(&self, node: i32, epoch: u64) -> NodeState {
        let nodes = self.nodes.lock();
        let known = nodes.iter().find(|known| known.node == node && known.epoch == epoch);
        known.map_or(NodeState { runs_there: false, is_ageing: true }, |known| {
            let now = Instant::now();
            NodeState {
                runs_there: known.runs_there && now < known.valid,
                is_ageing: now >= known.ask_again_at,
            }
        })
    }

    /// The nodes where it can run, or could.
    pub fn nodes(&self) -> Vec<i32> {
        let nodes = self.nodes.lock();
        nodes
            .iter()
            .filter(|known| known.runs_there || known.watch.is_some())
            .map(|known| known.node)
            .collect()
    }

    /// The table on which it relies on this node.
    pub fn watch_at(&self, node: i32) -> Option<Arc<Watch>> {
        self.nodes.lock().iter().find(|known| known.node == node)?.watch.clone()
    }

    /// Notes what is known of it on a node. A unit on its way to the node still finds the table that it relies on.
    pub fn note_node(&self, record: NodeRecord) {
        let mut nodes = self.nodes.lock();
        match nodes.iter_mut().find(|known| known.node == record.node) {
            None => nodes.push(record),
            Some(known) => {
                let watch = record.watch.or(known.watch.take());
                *known = NodeRecord { watch, ..record };
            }
        }
    }

    /// The state that it is known to leave behind in this epoch of the catalog, and the age of what that relies on.
    pub fn proof(&self, epoch: u64) -> Option<(Proof, Duration)> {
        let proof = *self.proof.lock();
        proof.filter(|(_, of, _)| *of == epoch).map(|(proof, _, at)| (proof, at.elapsed()))
    }

    /// Notes the state that it leaves behind, according to facts that were asked at this time.
    pub fn prove(&self, proof: Proof, (epoch, at): (u64, Instant)) {
        *self.proof.lock() = Some((proof, epoch, at));
    }

    /// Whether its text and its declared types say what clients rely on: the types of its parameters, and its columns.
    fn is_described_by_text(&self) -> bool {
        matches!(&self.analysis, Analysis::Candidate(candidate) if self.is_typed && !candidate.returns_rows)
    }

    /// Whether a verdict needs the server's description, which is not there. If its table is made anew, a successor with the same
    /// one takes its place.
    pub fn lacks_description(&self) -> bool {
        self.is_named && self.description.get().is_none() && !self.is_described_by_text()
    }

    /// Returns when it no longer waits for a verdict.
    pub async fn judged(&self) {
        let judged = self.was_judged.notified();
        let mut judged = std::pin::pin!(judged);
        judged.as_mut().enable(); // before the look, so the end is not missed
        if self.awaits_verdict.load(SeqCst) {
            judged.await;
        }
    }

    /// The names of the code that it could reach when it was last known to leave nothing.
    pub fn reached(&self) -> Option<Names> {
        self.reached.lock().clone()
    }

    /// Notes these names.
    pub fn note_reached(&self, names: Option<Names>) {
        *self.reached.lock() = names;
    }

    /// Whether its verdict belongs to another state of the catalog.
    pub fn is_of_another_state(&self, state: u64) -> bool {
        let decided = self.decided.lock();
        decided.as_ref().is_some_and(|decided| decided.state != state)
    }

    /// Notes a verdict.
    pub fn decide(&self, decided: VerdictRecord) {
        *self.decided.lock() = Some(decided);
    }
}

/// All statements of a pool.
#[derive(Debug, Default)]
pub struct Statements {
    simple: Lock<Generations>,
    extended: Lock<Generations>,
    records: Records,
}

impl Statements {
    /// The number of a client's new Parse.
    pub fn next_parse(&self) -> u64 {
        1 + PARSES.fetch_add(1, Relaxed)
    }

    /// The number of the last Parse of a client.
    pub fn last_parse(&self) -> u64 {
        PARSES.load(Relaxed)
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
            Arc::new(Statement::new(info, &self.records))
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
        self.extended.lock().get(&extended_key(&shape_of(text), types)).is_some()
    }

    /// The statement of a Parse message. Comments are no part of it. Text that is not UTF-8 is not analysed.
    pub fn extended(&self, text: &[u8], types: &[u8]) -> Arc<Statement> {
        let text = &*shape_of(text);
        lookup(&self.extended, &extended_key(text, types), || {
            let analysis = classify::analyse(str::from_utf8(text).unwrap_or("\u{fffd}"));
            let info = info(Bytes::copy_from_slice(text), Bytes::copy_from_slice(types), analysis);
            Arc::new(Statement::extended(info, &self.records))
        })
    }

    /// The same statement with these declared types. It is not analysed again.
    pub fn with_types(&self, statement: &Statement, types: &Bytes) -> Arc<Statement> {
        lookup(&self.extended, &extended_key(&statement.text, types), || {
            let id = IDS.fetch_add(1, Relaxed);
            Arc::new(Statement::extended(statement.info.with_types(id, types.clone()), &self.records))
        })
    }

    /// The same write, which fails if it changes another number of rows than one. Its runs count as those of the write.
    pub fn counted(statement: &Statement) -> Arc<Statement> {
        let make = || {
            let text = statement.counted_text();
            let analysis = classify::analyse(&String::from_utf8_lossy(&text));
            let info = info(text, statement.types.clone(), analysis);
            let unrecorded = Records::default();
            Arc::new(Statement { record: statement.record.clone(), ..Statement::new(info, &unrecorded) })
        };
        statement.counted.get_or_init(make).clone()
    }

    /// The catalog has changed, and maybe the meaning of the statement. From now on its text gives another statement,
    /// which no connection has prepared.
    pub fn supersede(&self, statement: &Statement) {
        statement.superseded.store(true, Relaxed);
        statement.record.renew_credit();
        statement.counted.get().inspect(|counted| counted.superseded.store(true, Relaxed));
        if let Some(packing) = statement.packing() {
            let locks = packing.parts().filter_map(|part| part.lock_statement.as_ref());
            let with_it = locks.flat_map(|ahead| [true, false].map(|waits| self.ahead(ahead, waits)));
            let with_it = with_it.chain(packing.merging.as_ref().map(|merging| self.merged(merging)));
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

    /// The statement that locks a row ahead, and waits for another transaction's lock or fails.
    pub fn ahead(&self, ahead: &LockStatement, waits: bool) -> Arc<Statement> {
        let types: Vec<u8> = ahead.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        let text =
            if waits { Cow::Borrowed(&ahead.text) } else { Cow::Owned(format!("{} nowait", ahead.text)) };
        self.extended(text.as_bytes(), &types)
    }

    /// The statement that calls a merge rule's batch function.
    pub fn merged(&self, merging: &Merging) -> Arc<Statement> {
        let types: Vec<u8> = merging.types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        self.extended(merging.text.as_bytes(), &types)
    }
}

/// The facts about a new statement.
fn info(text: Bytes, types: Bytes, analysis: Analysis) -> StatementInfo<Statement> {
    StatementInfo::new(IDS.fetch_add(1, Relaxed), text, types, analysis)
}

/// The text of a Parse message without comments.
fn shape_of(text: &[u8]) -> Cow<'_, [u8]> {
    match str::from_utf8(text).map(normalise::without_comments) {
        Ok(Cow::Owned(shape)) => Cow::Owned(shape.into_bytes()),
        _ => Cow::Borrowed(text),
    }
}

fn extended_key(text: &[u8], types: &[u8]) -> Vec<u8> {
    [text, b"\0", types].concat()
}
