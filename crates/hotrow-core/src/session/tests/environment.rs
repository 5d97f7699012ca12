//! The gateway around a simulated session: statements, verdicts, the lanes' inboxes, and the connection that it
//! holds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use hotrow_wire::backend::Problem;

use super::listener::SimInbox;
use crate::affinity::Affinity;
use crate::classify::{self, Analysis, Packing, Pass, Reason};
use crate::expect::Prepared;
use crate::key::{Key, KeyColumn, KeyName, KeySource, KeySpec, ValueForm};
use crate::lane::{Event, LaneKind, Unit};
use crate::normalise::Shape;
use crate::row_queue::{Queue, RowQueues};
use crate::session::{
    self, Answers, Connection, Environment, Pieces, Place, Proof, RunOutcome, Statement, StatementInfo,
    Verdict,
};
use crate::unit::{self, Packed};

/// A statement of simulated clients.
#[derive(Debug)]
pub struct SimStatement {
    info: StatementInfo<SimStatement>,
    verdict: Mutex<Option<Verdict>>,
    credit: AtomicI32,
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
        let count = self.text.iter().filter(|byte| **byte == b'$').count();
        Some(23_u32.to_be_bytes().repeat(count).into())
    }

    fn count(&self, outcome: RunOutcome) {
        if outcome == RunOutcome::Failed {
            self.credit.fetch_sub(2, Relaxed);
        }
    }
}

impl SimStatement {
    /// The catalogue's verdict: a statement by key is packed.
    pub fn decide(&self) -> Verdict {
        let text = str::from_utf8(&self.text).unwrap_or_default();
        let verdict = match (&self.analysis, text.contains(" where id = ")) {
            (Analysis::Candidate(_), true) => Verdict::Packed(Arc::new(packing(text))),
            _ => Verdict::Pass,
        };
        *self.verdict.lock().unwrap() = Some(verdict.clone());
        verdict
    }
}

fn packing(text: &str) -> Packing {
    let row = text.trim_end_matches(" returning n").rsplit(' ').next().unwrap_or_default();
    let source = match row.strip_prefix('$') {
        Some(parameter) => KeySource::Param(parameter.parse::<u16>().expect("a number") - 1),
        None => KeySource::Const(row.to_owned()),
    };
    let column = KeyColumn { name: "id".to_owned(), attnum: 1, form: ValueForm::Integer, source };
    let kind = if text.starts_with("select") { LaneKind::Read } else { LaneKind::Write };
    Packing {
        kind,
        table: "t".to_owned(),
        key: Some(KeySpec { table: 1, columns: vec![column] }),
        rows_per_commit: 128,
        touches_sequence: false,
        returns_rows: text.starts_with("select") || text.ends_with("returning n"),
        merging: None,
        lock_statement: None,
        in_key_space: false,
        watch: None,
        why: String::new(),
    }
}

/// A unit on its way to a lane and back.
#[derive(Debug)]
pub struct SimEnvelope {
    pub unit: Packed<Arc<SimStatement>>,
    pub slot: u64,
    changes_names: bool,
    pub answers: SimAnswers,
}

impl session::Envelope<SimStatement> for SimEnvelope {
    fn unit(&self) -> &Packed<Arc<SimStatement>> {
        &self.unit
    }

    fn address(&mut self, slot: u64, changes_names: bool) {
        (self.slot, self.changes_names) = (slot, changes_names);
    }
}

impl SimEnvelope {
    /// The gateway answers the unit with an error.
    pub fn refusal(self, problem: &Problem) -> Delivery {
        let mut reply = BytesMut::new();
        unit::put_refusals(problem, self.unit.readies(), &mut reply);
        match self.changes_names {
            true => Delivery::Refusal(self.slot, reply),
            false => Delivery::Reply(self.slot, reply),
        }
    }
}

/// A message from a lane to a session. Lanes run concurrently, so the message can arrive at any time.
pub enum Delivery {
    Reply(u64, BytesMut),
    Refusal(u64, BytesMut),
    Returned(u64, SimReturned),
}

/// A unit that a lane returns to a session.
#[derive(Debug)]
pub enum SimReturned {
    Alone(SimEnvelope),
    Resubmit(SimEnvelope),
}

pub type SimAnswers = Rc<RefCell<Answers<SimReturned>>>;

/// Statements by text and types.
type Statements = HashMap<(Vec<u8>, Vec<u8>), Arc<SimStatement>>;

/// The state that all sessions share.
pub struct Shared {
    statements: RefCell<Statements>,
    parses: Cell<u64>,
    /// The lanes that write, and those that read.
    pub affinity: [RefCell<Affinity>; 2],
    pub inboxes: RefCell<Vec<VecDeque<Event<SimEnvelope>>>>,
    /// Messages from lanes to sessions that have not arrived yet.
    deliveries: RefCell<VecDeque<(SimAnswers, Delivery)>>,
    random: RefCell<fastrand::Rng>,
    /// Statements that were passed through or packed.
    pub passed: Cell<usize>,
    pub packed: Cell<usize>,
    /// The rows on which open transactions work.
    pub rows: RefCell<RowQueues>,
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
            affinity: [(); 2].map(|()| RefCell::new(Affinity::new(LANES))),
            inboxes: RefCell::new((0..2 * LANES).map(|_| VecDeque::new()).collect()),
            passed: Cell::new(0),
            packed: Cell::new(0),
        })
    }

    /// A lane sends a message to a unit's session.
    pub fn deliver(&self, envelope: SimEnvelope, delivery: impl FnOnce(SimEnvelope) -> Delivery) {
        let answers = envelope.answers.clone();
        self.deliveries.borrow_mut().push_back((answers, delivery(envelope)));
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
            Delivery::Returned(slot, returned) => drop(answers.hand(slot, returned)),
        }
        true
    }

    fn statement(&self, text: &[u8], types: &[u8], is_simple: bool) -> Arc<SimStatement> {
        let key = (text.to_vec(), types.to_vec());
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
            info.pieces = self.pieces(&info).unwrap_or_default();
            info.id = self.statements.borrow().len() as u64 + 1;
            info.name = session::statement_name(info.id).into();
        }
        let statement = Arc::new(SimStatement { info, verdict: Mutex::default(), credit: AtomicI32::new(8) });
        self.statements.borrow_mut().insert(key, statement.clone());
        statement
    }

    fn pieces(&self, info: &StatementInfo<SimStatement>) -> Option<Pieces<SimStatement>> {
        let pieces = classify::pieces(str::from_utf8(&info.text).ok()?)?;
        let pieces = pieces.into_iter().map(|piece| {
            let literals = piece.first..piece.first + piece.count;
            let types = info.types.get(4 * literals.start..4 * literals.end)?;
            Some((self.statement(piece.text.as_bytes(), types, false), literals))
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
}

/// A place in a queue of transactions.
pub struct SimPlace {
    pub shared: Rc<Shared>,
    pub queue: Queue,
    pub others: Option<usize>,
}

impl Place for SimPlace {
    fn met(&mut self, others: usize) {
        self.others = self.others.max(Some(others));
    }
}

impl Drop for SimPlace {
    fn drop(&mut self) {
        self.shared.rows.borrow_mut().leave(self.queue, self.others);
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
        self.shared.statement(shape.shape.as_bytes(), &types, true)
    }

    fn knows_simple(&self, _: &Shape<'_>) -> bool {
        true
    }

    fn extended(&self, text: &[u8], types: &[u8]) -> Arc<SimStatement> {
        self.shared.statement(text, types, false)
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
            Analysis::Candidate(_) => statement.last_verdict(),
            _ => Some(Verdict::Pass),
        }
    }

    fn verdict_soon(&self, statement: &Arc<SimStatement>) -> Option<Verdict> {
        self.verdict(statement)
    }

    fn come_to(&self, row: Key, _: Box<KeyName>) -> (SimPlace, usize) {
        let others = self.shared.rows.borrow_mut().come_to(row);
        let queue = Queue::Row(row);
        (SimPlace { shared: self.shared.clone(), queue, others: None }, others)
    }

    fn passes(&self, statement: &SimStatement) -> bool {
        match &statement.analysis {
            Analysis::Candidate(_) => statement.is_passed() || !statement.has_credit(),
            Analysis::Pass(pass) => pass.boundary.is_none(),
            _ => false,
        }
    }

    fn proof(&self, statement: &Arc<SimStatement>) -> Proof {
        let is_clean = statement.is_plain || statement.packing().is_some();
        if is_clean { Proof { is_clean, moves_sequence: false } } else { Proof::NONE }
    }

    fn successor(&self, statement: &SimStatement) -> Arc<SimStatement> {
        self.extended(&statement.text, &statement.types)
    }

    fn packs(&self) -> bool {
        true
    }

    fn with_types(&self, statement: &SimStatement, types: &Bytes) -> Arc<SimStatement> {
        self.extended(&statement.text, types)
    }

    fn has_settings(&self) -> bool {
        !self.settings.borrow().is_empty()
    }

    fn catalogue_changed(&self) {
        for statement in self.shared.statements.borrow().values() {
            *statement.verdict.lock().unwrap() = None;
        }
    }

    fn envelope(&self, unit: Packed<Arc<SimStatement>>) -> SimEnvelope {
        SimEnvelope { unit, slot: 0, changes_names: false, answers: self.answers.clone() }
    }

    fn assign(&self, unit: &Packed<Arc<SimStatement>>, only: Option<usize>) -> Option<usize> {
        self.shared.affinity[unit.kind() as usize].borrow_mut().assign(unit.keys(), only)
    }

    fn submit(&self, lane: usize, first: bool, mut envelope: SimEnvelope) {
        let kind = envelope.unit.kind();
        let packed = &mut envelope.unit;
        let unit = Unit {
            session: self.client as u64,
            first,
            key: packed.key,
            rows_per_commit: packed.rows_per_commit,
            merge: packed.merge,
            may_wait: false,
            lockable: packed.is_lockable(),
            statements: packed.statement_count(),
            claims: std::mem::take(&mut packed.claims),
            at_fault: 0,
            bytes: packed.weight(),
            unmeasured: false,
            losses: 0,
            reruns: 0,
            cancelled: false,
            too_slow: false,
            payload: envelope,
        };
        self.shared.inboxes.borrow_mut()[kind as usize * LANES + lane].push_back(Event::Submit(unit));
    }

    fn answers<R>(&self, with: impl FnOnce(&mut Answers<SimReturned>) -> R) -> R {
        with(&mut self.answers.borrow_mut())
    }

    fn is_full(&self) -> bool {
        // The session asks before each message.
        if self.shared.random.borrow_mut().bool() {
            self.shared.arrive();
        }
        false
    }

    fn message_bytes_max(&self) -> usize {
        1 << 20
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn client_renamed(&self, _: &str) {}

    fn unit_passed(&self) {
        self.shared.passed.set(self.shared.passed.get() + 1);
    }

    fn unit_answered(&self, _: bool) {}

    fn unit_packed(&self) {
        self.shared.packed.set(self.shared.packed.get() + 1);
    }

    fn outcome_unknown(&self) {}

    fn server_closes(&self, _: &[u8]) {}

    fn disconnected(&self) {}

    fn next_notification(&self) -> Option<Bytes> {
        self.inbox.borrow_mut().pop_front()
    }

    fn notifications_up_to(&self, body: &[u8]) -> usize {
        let inbox = self.inbox.borrow();
        inbox.iter().position(|other| other[..] == *body).map_or(0, |index| index + 1)
    }

    fn notifications_end(&self) -> Option<Problem> {
        None
    }
}

/// A connection that a simulated session holds.
#[derive(Debug, Default)]
pub struct SimConnection {
    pub backend: usize,
    pub output: BytesMut,
    /// Bytes from the server that the session has not handled.
    pub input: BytesMut,
    pub prepared: Prepared,
    pub name: String,
    pub moved_sequence: bool,
}

/// The name of a client that sets none.
pub const DEFAULT_NAME: &str = "";

impl SimConnection {
    /// The process ID of the first backend. No client is told one of these.
    pub const FIRST_PROCESS_ID: u32 = 1000;
}

impl Connection for SimConnection {
    fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn prepared_mut(&mut self) -> &mut Prepared {
        &mut self.prepared
    }

    fn process_id(&self) -> u32 {
        Self::FIRST_PROCESS_ID + self.backend as u32
    }

    fn moved_sequence(&self) -> bool {
        self.moved_sequence
    }

    fn set_moved_sequence(&mut self) {
        self.moved_sequence = true;
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn default_name(&self) -> &str {
        DEFAULT_NAME
    }

    fn setting_changed(&mut self, name: &str, value: &str) {
        if name == "application_name" {
            value.clone_into(&mut self.name);
        }
    }

    fn kept_for_long(&mut self) {}
}
