//! The gateway around a simulated session: statements, verdicts, the lanes' inboxes, and the connection that it
//! holds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use hotrow_lane::affinity::{Affinity, LaneId};
use hotrow_lane::answers::Answers;
use hotrow_lane::cancel::CancelState;
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Claimed, Event, Unit};
use hotrow_lane::row_queue::{Contention, QueueId, RowQueues};
use hotrow_lane::waiting::Waiting;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::connection::SimConnection;
use super::envelope::{Delivery, SimAnswers, SimEnvelope, SimReturned};
use super::listener::SimInbox;
use super::packing::packing;
use super::postgres::{parameter_types, parameters};
use super::replicas::{FIRST_LANE, REPLICAS, SimReplicas};
use crate::classify::{self, Analysis, Packing, Pass, Reason};
use crate::key::{KeyName, KeySpec, ValueForm};
use crate::normalise::Shape;
use crate::pack_mode::PackMode;
use crate::replica::{LsnBound, ReadSource};
use crate::session::{
    self, Environment, OutcomeOfSets, Pieces, Place, Proof, RunOutcome, Statement, StatementInfo, Verdict,
};
use crate::settings;
use crate::unit::{self, Packed};

/// A statement of simulated clients.
#[derive(Debug)]
pub struct SimStatement {
    info: StatementInfo<SimStatement>,
    verdict: Mutex<Option<Verdict>>,
    credit: AtomicI32,
    outcome_of_sets: OnceLock<OutcomeOfSets>,
    reply: Mutex<Option<Bytes>>,
    /// How often its reply was wanted.
    asked: AtomicI32,
}

impl Deref for SimStatement {
    type Target = StatementInfo<SimStatement>;

    fn deref(&self) -> &StatementInfo<SimStatement> {
        &self.info
    }
}

impl unit::Prepared for SimStatement {
    fn name(&self) -> &[u8] {
        &self.name
    }
}

impl Statement for SimStatement {
    fn last_verdict(&self) -> Option<Verdict> {
        self.verdict.lock().unwrap().clone()
    }

    fn has_credit(&self) -> bool {
        self.credit.load(Relaxed) > 0
    }

    fn succeeded(&self) {
        self.credit.fetch_add(1, Relaxed);
    }

    fn is_superseded(&self) -> bool {
        false
    }

    fn is_described_as(&self, _: &SimStatement) -> bool {
        true
    }

    fn parameter_types(&self) -> Option<Bytes> {
        Some(parameter_types(parameters(str::from_utf8(&self.text).ok()?), &self.types).into())
    }

    fn count(&self, outcome: RunOutcome) {
        if outcome == RunOutcome::Failed {
            self.credit.fetch_sub(2, Relaxed);
        }
    }

    fn outcome_of_sets(&self) -> Option<&OutcomeOfSets> {
        self.outcome_of_sets.get()
    }

    fn learn_sets(&self, outcome: OutcomeOfSets) {
        let _ = self.outcome_of_sets.set(outcome);
    }
}

impl SimStatement {
    /// The catalog's verdict: a statement by key is packed.
    pub fn decide(&self) -> Verdict {
        let text = str::from_utf8(&self.text).unwrap_or_default();
        let verdict = match (&self.analysis, text.contains(" id = ")) {
            (Analysis::Candidate(_), true) => Verdict::Packed(Arc::new(packing(text))),
            _ => Verdict::Pass,
        };
        *self.verdict.lock().unwrap() = Some(verdict.clone());
        verdict
    }
}

/// Statements by their pool's settings, text and types.
type Statements = HashMap<(BTreeMap<String, String>, Vec<u8>, Vec<u8>), Arc<SimStatement>>;

/// The state that all sessions share.
pub struct Shared {
    statements: RefCell<Statements>,
    parses: Cell<u64>,
    pub replicas: RefCell<SimReplicas>,
    /// The lanes that write, and those that read.
    pub affinity: [RefCell<Affinity>; 2],
    pub inboxes: RefCell<Vec<VecDeque<Event<SimEnvelope>>>>,
    /// Messages from lanes to sessions that have not arrived yet.
    deliveries: RefCell<VecDeque<(SimAnswers, Delivery)>>,
    random: RefCell<fastrand::Rng>,
    /// Statements that were passed through or packed.
    pub passed: Cell<usize>,
    pub packed: Cell<usize>,
    /// What happens with units that can be packed.
    pub pack_mode: Cell<PackMode>,
    /// Statements that were passed through and would have been packed.
    pub shadowed: Cell<usize>,
    /// Writes of which clients were told before they ran, and transactions in which that was wrong.
    pub deferred: Cell<usize>,
    pub foretold_wrong: Cell<usize>,
    /// The rows on which open transactions work.
    pub rows: RefCell<RowQueues>,
    /// The sessions that have ended.
    pub over: RefCell<BTreeSet<u64>>,
    /// Whether clients sometimes do not read.
    pub stalls: Cell<bool>,
    /// The waiting calls, by their clients.
    pub waiting: RefCell<Waiting<usize, ValueForm>>,
    /// Units and connections that the gateway may still refuse.
    pub refusals: Cell<usize>,
    /// The channels that sessions have left, and the number of those that they have kept.
    pub left_channels: RefCell<Vec<(usize, Vec<String>, usize)>>,
}

/// Lanes of each kind.
pub const LANES: usize = 2;

impl Shared {
    pub fn new(random: fastrand::Rng) -> Rc<Self> {
        Rc::new(Shared {
            deliveries: RefCell::default(),
            random: RefCell::new(random),
            statements: RefCell::default(),
            parses: Cell::new(0),
            rows: RefCell::default(),
            waiting: RefCell::default(),
            left_channels: RefCell::default(),
            refusals: Cell::new(0),
            stalls: Cell::new(false),
            over: RefCell::default(),
            affinity: [(); 2].map(|()| RefCell::new(Affinity::new(LANES))),
            replicas: RefCell::default(),
            inboxes: RefCell::new((0..FIRST_LANE + REPLICAS * LANES).map(|_| VecDeque::new()).collect()),
            passed: Cell::new(0),
            packed: Cell::new(0),
            pack_mode: Cell::new(PackMode::On),
            deferred: Cell::new(0),
            foretold_wrong: Cell::new(0),
            shadowed: Cell::new(0),
        })
    }

    /// A lane sends a message to a unit's session.
    pub fn deliver(&self, envelope: SimEnvelope, delivery: impl FnOnce(SimEnvelope) -> Delivery) {
        let answers = envelope.answers.clone();
        self.deliveries.borrow_mut().push_back((answers, delivery(envelope)));
    }

    /// True once in this number of times, on average.
    pub fn happens(&self, once_in: u8) -> bool {
        self.random.borrow_mut().u8(..once_in) == 0
    }

    /// Whether the gateway refuses something now.
    pub fn refuses(&self) -> bool {
        let left = self.refusals.get();
        let refuses = left > 0 && self.happens(10);
        self.refusals.set(left - usize::from(refuses));
        refuses
    }

    /// Delivers the next of these messages. False if there is none.
    pub fn arrive(&self) -> bool {
        let Some((answers, delivery)) = self.deliveries.borrow_mut().pop_front() else { return false };
        let mut answers = answers.borrow_mut();
        match delivery {
            Delivery::Reply(slot, reply) => {
                answers.answer(slot, |out| out.extend_from_slice(&reply));
            }
            Delivery::Refusal(slot, reply) => {
                answers.refuses(slot);
                answers.answer(slot, |out| out.extend_from_slice(&reply));
            }
            Delivery::Returned(slot, returned) => drop(answers.give_back(slot, *returned)),
        }
        true
    }

    fn statement(&self, pool: &Settings, text: &[u8], types: &[u8], is_simple: bool) -> Arc<SimStatement> {
        let key = (pool.borrow().clone(), text.to_vec(), types.to_vec());
        if let Some(statement) = self.statements.borrow().get(&key) {
            return statement.clone();
        }
        let id = self.statements.borrow().len() as u64 + 1;
        let analysis = classify::analyse(str::from_utf8(text).unwrap_or("\u{fffd}"));
        let (text, types) = (Bytes::copy_from_slice(text), Bytes::copy_from_slice(types));
        let mut info = StatementInfo::new(id, text, types, analysis);
        let is_several =
            matches!(&info.analysis, Analysis::Pass(Pass { reason: Reason::SeveralStatements, .. }));
        if is_several && is_simple {
            info.pieces = self.pieces(pool, &info).unwrap_or_default();
            info.id = self.statements.borrow().len() as u64 + 1;
            info.name = session::statement_name(info.id).into();
        }
        let statement = Arc::new(SimStatement {
            info,
            verdict: Mutex::default(),
            credit: AtomicI32::new(8),
            outcome_of_sets: OnceLock::new(),
            reply: Mutex::default(),
            asked: AtomicI32::new(0),
        });
        self.statements.borrow_mut().insert(key, statement.clone());
        statement
    }

    fn pieces(&self, pool: &Settings, info: &StatementInfo<SimStatement>) -> Option<Pieces<SimStatement>> {
        let pieces = classify::pieces(str::from_utf8(&info.text).ok()?)?;
        let pieces = pieces.into_iter().map(|piece| {
            let literals = piece.first..piece.first + piece.count;
            let types = info.types.get(4 * literals.start..4 * literals.end)?;
            Some((self.statement(pool, piece.text.as_bytes(), types, false), literals))
        });
        pieces.collect()
    }
}

/// The gateway around one session.
pub struct SimEnvironment {
    pub shared: Rc<Shared>,
    pub client: usize,
    pub answers: SimAnswers,
    /// The settings of its pool.
    pub settings: Settings,
    pub inbox: SimInbox,
    /// It may have missed notifications.
    pub has_lost: Cell<bool>,
    pub cancel: SimCancel,
    /// In shadow mode, a unit is under way that would be packed.
    pub is_shadowed: bool,
}

/// Where the client's cancel requests go. Backends have numbers.
pub type SimCancel = Rc<RefCell<CancelState<usize>>>;

/// A place in a queue of transactions.
pub struct SimPlace {
    pub shared: Rc<Shared>,
    pub queue: QueueId,
    pub others: Option<usize>,
}

impl Place for SimPlace {
    fn found_others(&mut self, others: usize) {
        if self.others.is_none() {
            self.shared.rows.borrow_mut().reached_row(self.queue, 1);
        }
        self.others = self.others.max(Some(others));
    }
}

impl Drop for SimPlace {
    fn drop(&mut self) {
        let contention = self.others.map_or(Contention::NoRow(1), Contention::Others);
        self.shared.rows.borrow_mut().leave(self.queue, contention);
    }
}

/// The settings of a pool, changed when its session moves to another one.
pub type Settings = Rc<RefCell<BTreeMap<String, String>>>;

impl Environment for SimEnvironment {
    type Statement = SimStatement;
    type Connection = SimConnection;
    type Envelope = SimEnvelope;
    type Returned = SimReturned;
    type Place = SimPlace;

    fn simple(&self, shape: &Shape<'_>) -> Arc<SimStatement> {
        let types: Vec<u8> = shape.literals().flat_map(|literal| literal.type_oid.to_be_bytes()).collect();
        self.shared.statement(&self.settings, shape.shape.as_bytes(), &types, true)
    }

    fn knows_simple(&self, _: &Shape<'_>) -> bool {
        true
    }

    fn extended(&self, text: &[u8], types: &[u8]) -> Arc<SimStatement> {
        self.shared.statement(&self.settings, text, types, false)
    }

    fn knows_extended(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn next_parse(&self) -> u64 {
        self.shared.parses.set(self.shared.parses.get() + 1);
        self.shared.parses.get()
    }

    fn last_parse(&self) -> u64 {
        self.shared.parses.get()
    }

    fn verdict(&self, statement: &Arc<SimStatement>) -> Option<Verdict> {
        match &statement.analysis {
            // The first run of every eighth statement is passed through, while the catalog is asked.
            Analysis::Candidate(_) => statement.last_verdict().or_else(|| {
                let verdict = statement.decide();
                (!statement.id.is_multiple_of(8)).then_some(verdict)
            }),
            _ => Some(Verdict::Pass),
        }
    }

    fn packing(&self, statement: &SimStatement) -> Option<Arc<Packing>> {
        statement.packing()
    }

    fn waits_for_verdicts(&self) -> bool {
        false
    }

    fn enter_row(&self, row: Key, _: Box<KeyName>) -> (SimPlace, usize) {
        let others = self.shared.rows.borrow_mut().enter_row(row);
        let queue = QueueId::Row(row);
        (SimPlace { shared: self.shared.clone(), queue, others: None }, others)
    }

    fn passes(&self, statement: &SimStatement) -> bool {
        match &statement.analysis {
            Analysis::Candidate(_) => statement.is_passed() || !statement.has_credit(),
            Analysis::Pass(pass) => pass.block_command.is_none(),
            _ => false,
        }
    }

    fn proof(&self, statement: &Arc<SimStatement>, as_pool: bool) -> Option<Proof> {
        let is_clean = statement.is_plain || as_pool && statement.packing().is_some();
        Some(if is_clean { Proof::CLEAN } else { Proof::NONE })
    }

    fn known_reply(&self, statement: &SimStatement) -> Option<Bytes> {
        let is_old = statement.asked.fetch_add(1, Relaxed) % 8 == 7;
        statement.reply.lock().unwrap().clone().filter(|_| !is_old)
    }

    fn learn_reply(&self, _: &SimConnection, statement: &SimStatement, reply: Option<Bytes>) {
        *statement.reply.lock().unwrap() = reply;
    }

    fn successor(&self, statement: &SimStatement) -> Arc<SimStatement> {
        self.extended(&statement.text, &statement.types)
    }

    fn pack_mode(&self) -> PackMode {
        self.shared.pack_mode.get()
    }

    fn is_primary(&self) -> bool {
        true
    }

    fn with_types(&self, statement: &SimStatement, types: &Bytes) -> Arc<SimStatement> {
        self.extended(&statement.text, types)
    }

    fn counted(&self, statement: &Arc<SimStatement>) -> Arc<SimStatement> {
        statement.counted.get_or_init(|| self.extended(&statement.counted_text(), &statement.types)).clone()
    }

    fn write_deferred(&self) {
        self.shared.deferred.set(self.shared.deferred.get() + 1);
    }

    fn foretold_wrong(&self) {
        self.shared.foretold_wrong.set(self.shared.foretold_wrong.get() + 1);
    }

    fn has_settings(&self) -> bool {
        !self.settings.borrow().is_empty()
    }

    fn settings(&self) -> settings::Settings {
        as_settings(&self.settings.borrow())
    }

    fn may_find_room(&mut self) -> bool {
        self.next_parse().is_multiple_of(4)
    }

    fn speaks_utf8(&self) -> bool {
        true
    }

    fn catalog_changed(&self, _: classify::Alters) {
        for statement in self.shared.statements.borrow().values() {
            *statement.verdict.lock().unwrap() = None;
        }
        self.shared.replicas.borrow_mut().epoch += 1;
    }

    fn traces(&self) -> bool {
        false
    }

    fn envelope(&self, unit: Packed<Arc<SimStatement>>) -> SimEnvelope {
        let answers = self.answers.clone();
        SimEnvelope { unit, slot: 0, notified: None, changes_names: false, lsn_bound: None, answers }
    }

    fn assign(&self, unit: &Packed<Arc<SimStatement>>, only: Option<LaneId>) -> Option<LaneId> {
        let mut affinity = self.shared.affinity[unit.kind() as usize].borrow_mut();
        let index = affinity.assign(unit.keys(), only.map(|lane| lane.index))?;
        Some(LaneId { node: None, replica: None, index })
    }

    fn source(&self, bound: Option<&LsnBound>, _: &Packed<Arc<SimStatement>>) -> ReadSource {
        self.shared.replicas.borrow().source(bound)
    }

    fn newest_connection(&self) -> u64 {
        self.shared.replicas.borrow().connections
    }

    fn assign_replica(&self, replica: usize, unit: &Packed<Arc<SimStatement>>) -> Option<LaneId> {
        let replicas = self.shared.replicas.borrow();
        let index = replicas.all[replica].affinity.borrow_mut().assign(unit.keys(), None)?;
        Some(LaneId { node: None, replica: Some(replica), index })
    }

    fn submit(&self, lane: LaneId, first: bool, mut envelope: SimEnvelope) {
        let kind = envelope.unit.kind();
        let sends = |key: &KeySpec| self.shared.waiting.borrow_mut().sends(key.table, key.columns[0].form);
        envelope.notified = envelope.key_of_take().map(sends);
        let packed = &mut envelope.unit;
        let claimed =
            Claimed { may_wait: envelope.notified.is_some(), ..std::mem::take(&mut packed.claimed) };
        let unit = Unit::new(self.client as u64, first, claimed, envelope);
        let first = lane.replica.map_or(kind as usize * LANES, |replica| FIRST_LANE + replica * LANES);
        self.shared.inboxes.borrow_mut()[first + lane.index].push_back(Event::Submit(unit));
    }

    fn answers<R>(&self, with: impl FnOnce(&mut Answers<SimReturned>) -> R) -> R {
        with(&mut self.answers.borrow_mut())
    }

    fn is_full(&self) -> bool {
        // The session asks before each message.
        if self.shared.random.borrow_mut().bool() {
            self.shared.arrive();
        }
        self.shared.stalls.get() && self.shared.happens(10)
    }

    fn message_bytes_max(&self) -> usize {
        1 << 20
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn client_renamed(&self, _: &str) {}

    fn leave_unused_databases(&self) {}

    fn setting_reported(&mut self, _: &str, _: &str) {}

    fn unit_passed(&self) {
        self.shared.passed.set(self.shared.passed.get() + 1);
    }

    fn unit_answered(&self, _: bool) {}

    fn unit_packed(&self) {
        self.shared.packed.set(self.shared.packed.get() + 1);
    }

    fn early_verdict(&self, statement: &Arc<SimStatement>) -> Option<Verdict> {
        self.verdict(statement)
    }

    fn statements_shadowed(&self, _: u64, would_pack: bool) {
        self.shared.shadowed.set(self.shared.shadowed.get() + usize::from(would_pack));
    }

    fn unit_shadowed(&mut self, _: &Packed<Arc<SimStatement>>) {
        assert!(!std::mem::replace(&mut self.is_shadowed, true), "an earlier unit is under way");
    }

    fn shadow_over(&mut self) {
        assert!(std::mem::replace(&mut self.is_shadowed, false), "no unit is under way");
    }

    fn outcome_unknown(&self) {}

    fn server_closes(&self, _: &[u8]) {}

    fn disconnected(&self) {
        self.cancel.borrow_mut().leaves();
    }

    fn next_notification(&self) -> Option<Bytes> {
        self.inbox.borrow_mut().pop_front()
    }

    fn notifications_up_to(&self, body: &[u8]) -> usize {
        let inbox = self.inbox.borrow();
        inbox.iter().position(|other| other[..] == *body).map_or(0, |index| index + 1)
    }

    fn notifications_end(&self) -> Option<Problem> {
        self.has_lost
            .get()
            .then(|| Problem::fatal(SqlState::ConnectionFailure, "notifications may be lost", ""))
    }

    fn notifications_lost(&self) {
        self.has_lost.set(true);
    }

    fn channels_ended(&mut self, ended: &[String], left: usize) {
        self.shared.left_channels.borrow_mut().push((self.client, ended.to_vec(), left));
    }
}

/// The settings as the gateway reads them from the server.
pub fn as_settings(settings: &BTreeMap<String, String>) -> settings::Settings {
    let digits = |value: &str| value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let listed: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={}", digits(value))).collect();
    settings::Settings::read(&listed.join(" ")).expect("valid")
}
