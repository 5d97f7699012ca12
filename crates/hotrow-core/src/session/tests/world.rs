//! Simulated clients with real sessions, lanes, and connections to the model of PostgreSQL. The order of events is
//! random: bytes arrive in any pieces, backends and lanes proceed in any order, connections may be cut, and clients may send
//! cancel requests.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::BytesMut;
use hotrow_wire::backend::Status;

use super::cancelling::Request;
use super::client::Client;
use super::connection::{DEFAULT_NAME, SimConnection};
use super::envelope::SimReturned;
use super::environment::{LANES, Shared, SimEnvironment};
use super::lane::LaneTask;
use super::leaving::Fate;
use super::listener::Listener;
use super::postgres::{Backend, Database};
use super::replicas::{FIRST_LANE, REPLICAS, Search};
use super::waits::Wait;
use crate::pack_mode::PACK_MODES;
use crate::session::{Need, Stage, Wait as Waits};

/// Everything around the clients.
pub struct World {
    pub random: fastrand::Rng,
    pub database: Database,
    pub shared: Rc<Shared>,
    pub clients: Vec<Client>,
    pub lanes: Vec<LaneTask>,
    pub backends: Vec<Backend>,
    /// Connections that sessions have returned, with the settings of their pools.
    pub(super) idle: Vec<(BTreeMap<String, String>, SimConnection)>,
    pub(super) listener: Listener,
    /// Cuts that may still happen.
    pub cuts: usize,
    /// Cancel requests that clients may still send.
    pub cancels: usize,
    /// The requests that they have sent.
    pub requests: Vec<Request>,
    /// Notifications that another client may still send on the clients' channels.
    pub sends: usize,
    /// Restarts of standbys, lost connections to them, and changes of the set of those that serve, that may still happen.
    pub restarts: usize,
    /// What another client may still put into the clients' boxes.
    pub gifts: usize,
    /// Notifications of gifts that have not arrived.
    pub notifications: VecDeque<String>,
    /// Whether sessions wait for connections and turns.
    pub waits: bool,
    /// No marker arrives on connections that are to take over all channels.
    pub loses_held: bool,
    /// There can be one more pool for a session that has changed its settings.
    pub has_room: bool,
    /// The server was asked which state is left, and no session has moved since.
    pub is_asked: bool,
    /// How often sessions have handed over state, by what has become of it.
    pub handed_over: BTreeMap<&'static str, usize>,
    /// Steps so far.
    pub clock: u64,
    /// A reload can change what happens with units that can be packed.
    pub changes_mode: bool,
    /// Clients that may still leave, and steps of the gateway's stop that may still happen.
    pub leaves: usize,
    /// The sessions that have ended, by what became of their clients.
    pub ended: BTreeMap<Option<Fate>, usize>,
    /// The progress of the gateway's stop.
    pub stage: Stage,
    /// Pauses of the lanes that may still happen.
    pub pauses: usize,
    pub(super) is_paused: bool,
    /// The bytes that each client had received before the first fault.
    pub before_faults: Option<Vec<usize>>,
}

/// The process ID of a client outside of the gateway.
pub const OUTSIDER: u32 = 500;

impl World {
    /// Clients with these programs.
    pub fn new(mut random: fastrand::Rng, programs: Vec<BytesMut>) -> Self {
        let shared = Shared::new(random.fork());
        let clients = programs.into_iter().enumerate();
        let clients = clients.map(|(number, program)| Client::new(shared.clone(), number, program));
        World {
            random,
            database: Database::default(),
            listener: Listener::new(&Database::default()),
            clients: clients.collect(),
            lanes: (0..FIRST_LANE + REPLICAS * LANES).map(LaneTask::new).collect(),
            shared,
            backends: Vec::new(),
            idle: Vec::new(),
            cuts: 0,
            cancels: 0,
            requests: Vec::new(),
            sends: 0,
            restarts: 0,
            gifts: 0,
            notifications: VecDeque::new(),
            waits: false,
            loses_held: false,
            has_room: true,
            is_asked: false,
            handed_over: BTreeMap::new(),
            clock: 0,
            changes_mode: false,
            leaves: 0,
            ended: BTreeMap::new(),
            stage: Stage::Serving,
            pauses: 0,
            is_paused: false,
            before_faults: None,
        }
    }

    /// Runs until no work is left.
    pub fn run(&mut self) {
        let mut quiet = 0;
        while quiet < 200 {
            quiet = if self.turn() { 0 } else { quiet + 1 };
        }
        if self.can_proceed() {
            return self.run();
        }
        for (number, client) in self.clients.iter().enumerate() {
            let (fate, ending) = (client.fate, &client.ending);
            assert!(
                client.is_done(),
                "client {number} waits forever for {}, {fate:?}, {ending:?}, closed: {}, {:?}",
                client.need(),
                client.is_closed,
                client.input,
            );
            let pending = client.answers.borrow().pending();
            assert!(client.is_over || pending == 0, "client {number} has unanswered units");
            let reported = self.listener.channels(number);
            assert!(
                client.is_over || reported == *client.session.shared_channels(),
                "client {number}: {reported:?}"
            );
        }
        self.end_all();
        self.backends.iter_mut().for_each(|backend| backend.die(&mut self.database));
    }

    /// A client outside of the gateway sends a notification, or signals listeners after its commit.
    fn outsider_turn(&mut self) -> bool {
        let (sent, signalled) = (self.database.notifications.len(), self.database.signalled);
        if signalled < sent {
            match self.random.u8(..3) {
                0 => self.database.signalled = sent,
                1 => self.listener.signal(),
                _ if self.backends.is_empty() => {}
                _ => {
                    let backend = self.random.usize(..self.backends.len());
                    self.backends[backend].signal();
                }
            }
        }
        if self.sends == 0 {
            return signalled < sent;
        }
        self.sends -= 1;
        self.database.change_shared_row();
        let client = self.random.usize(..self.clients.len());
        let channel = format!("{}{}", ["c", "c", "d"][self.random.usize(..3)], 10 * client);
        self.database.notifications.push((OUTSIDER, channel, sent.to_string()));
        true
    }

    fn can_proceed(&mut self) -> bool {
        (0..5_000).any(|_| self.turn())
    }

    /// Takes one step. False if the chosen part had no work.
    fn turn(&mut self) -> bool {
        self.clock += 1;
        if self.changes_mode && self.random.u8(..32) == 0 {
            self.shared.pack_mode.set(PACK_MODES[self.random.usize(..PACK_MODES.len())]);
        }
        if self.before_faults.is_some() {
            return self.take_turn();
        }
        let (faults, received) = (self.faults(), self.clients.iter().map(|client| client.received.len()));
        let received = received.collect();
        let acts = self.take_turn();
        if self.faults() < faults {
            self.before_faults = Some(received);
        }
        acts
    }

    fn take_turn(&mut self) -> bool {
        if self.cancels > 0 && self.random.u8(..40) == 0 {
            self.cancels -= 1;
            self.cancel();
            return true;
        }
        if self.gifts > 0 && self.random.u8(..40) == 0 {
            self.give();
            return true;
        }
        if self.leaves > 0 && self.random.u8(..80) == 0 {
            self.leaves -= 1;
            self.one_leaves();
            return true;
        }
        if self.is_paused || self.pauses > 0 && self.random.bool() {
            let changes = self.random.u8(..100) == 0;
            if changes {
                self.pauses = self.pauses.saturating_sub(1);
                self.pause();
                return true;
            }
        }
        match self.random.u8(..9) {
            0..4 => {
                let client = self.random.usize(..self.clients.len());
                self.client_turn(client)
            }
            4 => self.shared.arrive(),
            5 => {
                let lane = self.random.usize(..self.lanes.len());
                self.lane_turn(lane)
            }
            6 if self.random.bool() => self.listener_turn(),
            6 => self.replica_turn(),
            7 if self.random.u8(..3) == 0 => self.outsider_turn(),
            8 if self.random.u8(..4) == 0 => self.arrive() | self.notify() | self.ask_again(),
            _ if self.backends.is_empty() => false,
            _ => {
                let backend = self.random.usize(..self.backends.len());
                let backend = &mut self.backends[backend];
                if self.random.u8(..4) == 0 && backend.input.is_empty() {
                    backend.report_idle(&self.database);
                }
                backend.step(&mut self.database)
            }
        }
    }

    pub(super) fn lane_turn(&mut self, lane: usize) -> bool {
        let inbox = self.shared.inboxes.borrow_mut()[lane].pop_front();
        let task = &mut self.lanes[lane];
        if self.is_paused && self.random.u8(..8) == 0 {
            task.expire(&mut self.random, &self.shared);
        }
        if let Some(event) = inbox {
            task.step(event, &self.shared);
            return true;
        }
        if !task.has_work() {
            return false;
        }
        if self.cuts > 0 && self.random.u8(..12) == 0 {
            self.cuts -= 1;
            let commits = self.random.bool();
            task.cut(commits, &mut self.database, &self.shared);
        } else {
            task.work(&mut self.database, &self.shared);
        }
        true
    }

    /// Clients that have waited go on.
    fn listener_turn(&mut self) -> bool {
        self.listener.step(&mut self.database);
        let is_busy = self.listener.is_busy();
        for (number, wait) in self.listener.take_done() {
            let client = &mut self.clients[number];
            let is_awaited = client.catches_up.take_if(|number| *number == wait).is_some();
            if is_awaited && !client.is_over {
                client.cancel.borrow_mut().wait_over();
                client.session.caught_up();
                client.relay();
                self.provide(number);
            }
        }
        is_busy
    }

    /// The listening connection has everything that was committed.
    pub(super) fn catch_up_now(&mut self) {
        // Clients that wait for it go on in the listener's turn.
        self.listener.report(&self.database);
    }

    /// A transaction that has ended or failed has given up its places among those that work on its rows.
    fn check_places(&self, number: usize) {
        let session = &self.clients[number].session;
        let (_, status, ..) = session.held_state();
        let is_open = status == Status::Transaction;
        assert!(is_open || session.places.is_empty(), "client {number} keeps places: {status:?}");
    }

    fn client_turn(&mut self, number: usize) -> bool {
        let cuts = self.cuts > 0 && self.random.u8(..20) == 0;
        let client = &mut self.clients[number];
        if client.is_over {
            return false;
        }
        if client.delayed.is_some() {
            self.provide(number);
            return false;
        }
        if client.wait.is_some() {
            self.wait_turn(number);
            self.provide(number);
            return true;
        }
        let waits = self.clients[number].catches_up.is_some();
        if waits && self.clients[number].cancel.borrow().is_cancelled() {
            self.give_up_catching_up(number);
            self.provide(number);
            return true;
        }
        if !waits && (self.meet_fate(number) || self.finish(number)) {
            self.provide(number);
            return true;
        }
        let client = &mut self.clients[number];
        let acts = match self.random.u8(..4) {
            0 => client.send(&mut self.random, &self.database),
            1 => client.write(&mut self.random, &mut self.backends, &self.database),
            2 if cuts => self.cut(number),
            2 => client.read(&mut self.random, &mut self.backends),
            _ => self.handle_returned(number),
        };
        self.provide(number);
        self.check_places(number);
        acts
    }

    /// Runs a session, and provides everything that needs no other part of the world.
    pub(super) fn provide(&mut self, number: usize) {
        loop {
            let client = &mut self.clients[number];
            if client.is_over || client.catches_up.is_some() || client.wait.is_some() {
                return;
            }
            let need = match client.delayed.take() {
                Some(need) => Ok(Some(need)),
                None => client.step(),
            };
            for (client, ended, left) in self.shared.left_channels.take() {
                self.listener.unsubscribe(client, &ended, left);
                if left == 0 {
                    self.clients[client].inbox.borrow_mut().clear();
                }
            }
            let need = match need {
                Err(end) => {
                    self.end_session(number, end, true);
                    continue;
                }
                Ok(None) => match self.settled(number) {
                    true => continue,
                    false => return,
                },
                Ok(Some(need)) => need,
            };
            let client = &mut self.clients[number];
            client.is_at(&need);
            match need {
                Need::Event => {
                    client.need = Some(match client.session.waits(self.stage, &client.input) {
                        Waits::Lanes => Need::Lanes,
                        Waits::Reply => Need::Reply,
                        _ => Need::Event,
                    });
                    return;
                }
                need @ (Need::Reply | Need::Lanes) => {
                    client.need = Some(need);
                    return;
                }
                Need::Connection => self.need_connection(number),
                Need::Turn(request, _) => self.need_turn(number, request),
                Need::Verdict(statement) => self.need_verdict(number, statement),
                Need::Classified(_) => {}
                need @ Need::Notifications => {
                    client.need = Some(need);
                    return self.begin_catching_up(number);
                }
                Need::Enter(settings) => self.need_pool(number, settings),
                Need::Replica => {
                    let epoch = self.shared.replicas.borrow().epoch;
                    return self.begin_wait(number, Wait::Replica(Search::Asks { epoch }));
                }
                need => {
                    if !client.is_quiet_for(&need) {
                        client.delayed = Some(need);
                        return;
                    }
                    self.use_backend(number, need);
                }
            }
        }
    }

    /// Provides what needs the backend of a session, or ends its work for the session.
    fn use_backend(&mut self, number: usize, need: Need<SimEnvironment>) {
        let client = &mut self.clients[number];
        let backend = match &need {
            Need::Release { connection, .. } => connection.backend,
            _ => client.session.connection().expect("it has a backend").backend,
        };
        self.check_backend(backend);
        let client = &mut self.clients[number];
        if self.backends[backend].is_dead && !matches!(need, Need::Release { .. }) {
            if let Err(end) = client.session.server_gone() {
                self.end_session(number, end, false);
            }
            return;
        }
        match need {
            Need::Prepared(statements) => {
                let connection =
                    client.session.connection().expect("statements are prepared on a connection");
                let backend = &mut self.backends[connection.backend];
                let mut prepared = statements;
                prepared
                    .retain(|statement| backend.prepares(&statement.name, &statement.text, &statement.types));
                client.session.prepared(&prepared);
            }
            Need::Rename => {
                let name = client.session.first_name().to_owned();
                let connection = client.session.connection().expect("a name is set on a connection");
                self.backends[connection.backend].set_name(&name);
                connection.name = name;
                client.session.renamed();
            }
            Need::StateLeft => self.query_state(number),
            Need::TakeOver(takes_over) => self.take_over(number, takes_over),
            Need::Move(settings) => {
                self.check_is_free(number);
                self.move_to_pool(number, backend, &settings);
            }
            Need::Restore => {
                self.check_is_free(number);
                let client = &mut self.clients[number];
                self.backends[backend].set_settings(&client.settings.borrow());
                client.session.restored();
                self.count_step("restored");
            }
            Need::Release { connection, reusable } => self.release(number, connection, reusable),
            _ => unreachable!("it needs no backend"),
        }
    }

    pub(super) fn count_step(&mut self, step: &'static str) {
        *self.handed_over.entry(step).or_default() += 1;
    }

    pub fn connect(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let name = client.session.application_name().to_owned();
        let pool = client.settings.borrow().clone();
        let idle = self.idle.iter().rposition(|(settings, _)| *settings == pool);
        let idle = idle.map(|index| self.idle.remove(index).1);
        let mut connection = idle.unwrap_or_else(|| {
            let mut backend = Backend::new(DEFAULT_NAME, &name);
            backend.process_id = SimConnection::FIRST_PROCESS_ID + self.backends.len() as u32;
            self.backends.push(backend);
            SimConnection { backend: self.backends.len() - 1, ..SimConnection::default() }
        });
        self.check_backend(connection.backend);
        let client = &mut self.clients[number];
        let (first, last) = client.answers.borrow().slots();
        if !client.cancel.borrow_mut().works(connection.backend, last.map(|_| first)) {
            client.session.wait_cancelled();
            return self.idle.push((pool, connection));
        }
        let backend = &mut self.backends[connection.backend];
        backend.settings = pool;
        backend.set_name(&name);
        connection.name = name;
        for channel in client.session.shared_channels() {
            backend.listen_now(channel, &self.database);
        }
        self.catch_up_now();
        self.clients[number].session.connected(connection);
    }

    /// Handles a unit that a lane has returned.
    fn handle_returned(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        if !matches!(client.need, Some(Need::Lanes)) {
            return false;
        }
        let Some((slot, returned)) = client.answers.borrow_mut().take_returned() else { return false };
        let is_meant = client.cancel.borrow().is_meant(Some(slot));
        match returned {
            SimReturned::Alone(envelope) => client.session.begin_alone(envelope),
            SimReturned::Refuse(envelope, problem) => client.session.refuse_returned(&envelope, &problem),
            SimReturned::Resubmit(envelope) => client.session.resubmit(envelope, is_meant),
            SimReturned::Wait(envelope, empty) => self.wait_with_call(number, envelope, empty),
        }
        true
    }
}
