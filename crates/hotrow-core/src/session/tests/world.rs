//! Simulated clients with real sessions, lanes, and connections to the model of PostgreSQL. The order of events is
//! random: bytes arrive in any pieces, backends and lanes proceed in any order, and connections may be cut.

use std::rc::Rc;

use bytes::{Buf, BytesMut};
use hotrow_wire::backend::{Problem, tag};
use hotrow_wire::split;

use super::environment::{
    DEFAULT_NAME, LANES, Settings, Shared, SimAnswers, SimConnection, SimEnvironment, SimPlace, SimReturned,
};
use super::lane::LaneTask;
use super::listener::{Listener, SimInbox};
use super::postgres::{Backend, Database};
use crate::classify::Effect;
use crate::notifications::MARKER_CHANNEL;
use crate::row_queue::Place;
use crate::session::statement::own_statement;
use crate::session::{Need, Session, SessionEnd, StateLeft, TakesOver};

/// One client and its session.
pub struct Client {
    pub program: BytesMut,
    input: BytesMut,
    session: Session<SimEnvironment>,
    answers: SimAnswers,
    settings: Settings,
    /// Bytes that the client has received.
    pub received: BytesMut,
    /// The current need of the session.
    need: Option<Need<SimEnvironment>>,
    pub is_over: bool,
    inbox: SimInbox,
    /// It waits for the listening connection.
    catches_up: bool,
}

/// Everything around the clients.
pub struct World {
    pub random: fastrand::Rng,
    pub database: Database,
    pub shared: Rc<Shared>,
    pub clients: Vec<Client>,
    lanes: Vec<LaneTask>,
    backends: Vec<Backend>,
    /// Connections that sessions have returned.
    idle: Vec<SimConnection>,
    listener: Listener,
    /// Cuts that may still happen.
    pub cuts: usize,
    /// Notifications that another client may still send on the clients' channels.
    pub sends: usize,
}

/// The process ID of a client outside of the gateway.
pub const OUTSIDER: u32 = 500;

/// The name of the clients at log-in.
pub const CLIENT_NAME: &str = "client";

impl World {
    /// Clients with these programs.
    pub fn new(mut random: fastrand::Rng, programs: Vec<BytesMut>) -> Self {
        let shared = Shared::new(random.fork());
        let clients = programs.into_iter().enumerate().map(|(client, program)| {
            let answers = SimAnswers::default();
            let (settings, inbox) = (Settings::default(), SimInbox::default());
            let environment = SimEnvironment {
                shared: shared.clone(),
                client,
                answers: answers.clone(),
                settings: settings.clone(),
                inbox: inbox.clone(),
            };
            Client {
                program,
                input: BytesMut::new(),
                session: Session::new(environment, CLIENT_NAME.to_owned()),
                answers,
                settings,
                received: BytesMut::new(),
                need: Some(Need::Event),
                is_over: false,
                inbox,
                catches_up: false,
            }
        });
        World {
            random,
            database: Database::default(),
            listener: Listener::new(&Database::default()),
            clients: clients.collect(),
            lanes: (0..2 * LANES).map(LaneTask::new).collect(),
            shared,
            backends: Vec::new(),
            idle: Vec::new(),
            cuts: 0,
            sends: 0,
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
            let is_done = client.is_over || client.program.is_empty() && client.input.is_empty();
            assert!(is_done, "client {number} waits forever for {}", name_of(client.need.as_ref()));
            assert_eq!(client.answers.borrow().pending(), 0, "client {number} has unanswered units");
        }
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
        match self.random.u8(..8) {
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
            7 if self.random.u8(..3) == 0 => self.outsider_turn(),
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

    fn lane_turn(&mut self, lane: usize) -> bool {
        let inbox = self.shared.inboxes.borrow_mut()[lane].pop_front();
        let task = &mut self.lanes[lane];
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
        for number in self.listener.take_done() {
            let client = &mut self.clients[number];
            client.catches_up = false;
            if !client.is_over {
                client.session.caught_up();
                client.relay();
                self.provide(number);
            }
        }
        is_busy
    }

    /// The listening connection has everything that was committed.
    fn catch_up_now(&mut self) {
        // Clients that wait for it go on in the listener's turn.
        self.listener.report(&self.database);
    }

    fn client_turn(&mut self, number: usize) -> bool {
        let cuts = self.cuts > 0 && self.random.u8(..20) == 0;
        let client = &mut self.clients[number];
        if client.is_over {
            return false;
        }
        let acts = match self.random.u8(..4) {
            0 => client.send(&mut self.random),
            1 => client.write(&mut self.random, &mut self.backends),
            2 if cuts => client.cut(&mut self.backends, &mut self.database, &mut self.cuts),
            2 => client.read(&mut self.random, &mut self.backends),
            _ => client.handle_returned(),
        };
        self.provide(number);
        acts
    }

    /// Runs a session, and provides everything that needs no other part of the world.
    fn provide(&mut self, number: usize) {
        loop {
            let client = &mut self.clients[number];
            if client.is_over || client.catches_up {
                return;
            }
            let mut taken = 0;
            let need = client.session.step(&client.input, &mut taken);
            client.input.advance(taken);
            let out = std::mem::take(&mut client.answers.borrow_mut().out);
            client.received.extend_from_slice(&out);
            match need {
                Err(end) => return client.end(&end, &mut self.backends, &mut self.database),
                Ok(need @ (Need::Event | Need::Reply | Need::Lanes)) => {
                    client.need = Some(need);
                    return;
                }
                Ok(Need::Connection) => self.connect(number),
                Ok(Need::Turn(queue, _)) => {
                    let shared = self.shared.clone();
                    assert_eq!(
                        shared.rows.borrow_mut().join(queue),
                        Place::Works,
                        "clients use separate rows"
                    );
                    client.session.placed(queue, SimPlace { shared, queue, others: None });
                }
                Ok(Need::Verdict(statement)) => {
                    let verdict = statement.decide();
                    client.session.decided(statement, Ok(verdict));
                }
                Ok(Need::Classified(_)) => {}
                Ok(Need::Prepared(statements)) => {
                    let connection =
                        client.session.connection().expect("statements are prepared on a connection");
                    let backend = &mut self.backends[connection.backend];
                    let mut prepared = statements;
                    prepared.retain(|statement| {
                        backend.prepares(&statement.name, &statement.text, &statement.types)
                    });
                    client.session.prepared(&prepared);
                }
                Ok(Need::Rename) => {
                    let name = client.session.first_name().to_owned();
                    let connection = client.session.connection().expect("a name is set on a connection");
                    self.backends[connection.backend].set_name(&name);
                    connection.name = name;
                    client.session.renamed();
                }
                Ok(Need::StateLeft) => self.query_state(number),
                Ok(need @ Need::Notifications) => {
                    client.need = Some(need);
                    client.catches_up = true;
                    return self.listener.catch_up(number);
                }
                Ok(Need::Release { connection, reusable }) => self.release(number, connection, reusable),
            }
        }
    }

    fn connect(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let name = client.session.application_name().to_owned();
        let mut connection = self.idle.pop().unwrap_or_else(|| {
            let mut backend = Backend::new(DEFAULT_NAME, &name);
            backend.process_id = SimConnection::FIRST_PROCESS_ID + self.backends.len() as u32;
            self.backends.push(backend);
            SimConnection { backend: self.backends.len() - 1, ..SimConnection::default() }
        });
        let backend = &mut self.backends[connection.backend];
        backend.settings.clone_from(&client.settings.borrow());
        backend.set_name(&name);
        connection.name = name;
        for channel in client.session.shared_channels() {
            backend.listen_now(channel, &self.database);
        }
        self.catch_up_now();
        self.clients[number].session.connected(connection);
    }

    /// The state of a connection in the server's catalogue and settings.
    fn query_state(&mut self, number: usize) {
        let listens = !self.share(number);
        let Client { session, settings, .. } = &mut self.clients[number];
        let connection = session.connection().expect("state is left on a connection");
        let backend = &mut self.backends[connection.backend];
        let own = |name: &String| name.is_empty() || own_statement(name.as_bytes()).is_some();
        let present = backend.listed_settings();
        let mut effect = Effect {
            listen: listens,
            prepared: backend.statements.keys().any(|name| !own(name)),
            ..Effect::NONE
        };
        let prepared = backend.statements.keys().filter(|name| !name.is_empty()).count();
        if *settings.borrow() != present {
            // Sometimes there cannot be one more pool.
            effect.settings = effect.pins() || self.random.u8(..3) == 0;
            if !effect.settings {
                settings.replace(present);
                session.moved();
            }
        }
        session.state_found(StateLeft { effect, prepared: Some(prepared) });
    }

    /// Hands the channels of a connection over to the listening one, unless that cannot listen.
    fn share(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        let connection = client.session.connection().expect("channels are found on a connection");
        let found = self.backends[connection.backend].listens.channels.clone();
        let was_shared = !client.session.shared_channels().is_empty();
        let in_doubt = client.session.channels_in_doubt() && was_shared;
        let added = client.session.channels_found(found);
        let can_share = added.is_empty() || self.random.u8(..4) > 0;
        match can_share {
            true if added.is_empty() && !in_doubt => {}
            true => self.take_over(number, added.clone(), TakesOver::Shared(added)),
            false if was_shared => self.take_over(number, Vec::new(), TakesOver::Held),
            false => {}
        }
        let client = &mut self.clients[number];
        let mut ended = client.session.end_channels();
        if client.session.shared_channels().is_empty() {
            ended.extend(["c", "d"].map(|name| format!("{name}{}", 10 * number))); // the session leaves
            client.inbox.borrow_mut().clear();
        }
        self.listener.unsubscribe(number, &ended);
        can_share
    }

    /// Another connection takes over at a marker.
    fn take_over(&mut self, number: usize, channels: Vec<String>, takes_over: TakesOver) {
        let client = &mut self.clients[number];
        let backend = client.session.connection().expect("both connections listen").backend;
        self.backends[backend].listen_now(MARKER_CHANNEL, &self.database);
        let inbox = client.inbox.clone();
        let marker = self.listener.subscribe(number, inbox, channels, &mut self.database);
        client.session.expect_marker(Some((marker.clone(), takes_over)));
        self.backends[backend].report_idle(&self.database);
        let output = self.backends[backend].output.split();
        client.session.connection().expect("it is held").input.extend_from_slice(&output);
        client.relay();
        assert!(!client.session.expects_marker(), "the marker is missing");
        self.listener.report(&self.database);
        self.clients[number].session.taken_over(&marker);
        self.backends[backend].listens.channels.remove(MARKER_CHANNEL);
    }

    /// A session returns a connection. Another client must not find state of this client on it.
    fn release(&mut self, number: usize, mut connection: SimConnection, reusable: bool) {
        let settings = self.clients[number].settings.borrow().clone();
        let backend = &mut self.backends[connection.backend];
        if !reusable {
            return backend.die(&mut self.database);
        }
        // A Flush may be sent in part only. The next user's messages follow it.
        backend.input.extend_from_slice(&connection.output.split());
        connection.input.extend_from_slice(&backend.output.split());
        let mut unread = &connection.input.split()[..];
        while let Some(frame) = split(unread, |_| usize::MAX).expect("valid") {
            assert_eq!(frame.tag, tag::NOTIFICATION, "replies are not read");
            unread = &unread[frame.bytes.len()..];
        }
        assert!(unread.is_empty(), "replies are not read");
        assert_eq!(backend.listed_settings(), settings, "settings are left on a connection");
        backend.settings.clear();
        backend.listens.channels.clear();
        let is_own = |name: &str| name.is_empty() || own_statement(name.as_bytes()).is_some();
        assert!(backend.statements.keys().all(|name| is_own(name)), "a name is left on a connection");
        assert_eq!(backend.status, hotrow_wire::backend::Status::Idle, "a transaction is left open");
        self.idle.push(connection);
    }
}

impl Client {
    /// The client sends some bytes.
    fn send(&mut self, random: &mut fastrand::Rng) -> bool {
        if self.program.is_empty() || !matches!(self.need, Some(Need::Event)) {
            return false;
        }
        let bytes = match random.u8(..3) {
            0 => self.program.len(),
            _ => random.usize(1..=self.program.len()),
        };
        self.input.extend_from_slice(&self.program.split_to(bytes));
        true
    }

    /// The session's messages reach the backend.
    fn write(&mut self, random: &mut fastrand::Rng, backends: &mut [Backend]) -> bool {
        let Some(connection) = self.session.connection().filter(|held| !held.output.is_empty()) else {
            return false;
        };
        let bytes = random.usize(1..=connection.output.len());
        let part = connection.output.split_to(bytes);
        backends[connection.backend].input.extend_from_slice(&part);
        true
    }

    /// Replies of the backend arrive.
    fn read(&mut self, random: &mut fastrand::Rng, backends: &mut [Backend]) -> bool {
        let Some(connection) = self.session.connection() else { return false };
        let output = &mut backends[connection.backend].output;
        if output.is_empty() {
            return false;
        }
        let bytes = random.usize(1..=output.len());
        connection.input.extend_from_slice(&output.split_to(bytes));
        self.relay();
        true
    }

    /// The session handles the replies that have arrived.
    fn relay(&mut self) {
        let Some(connection) = self.session.connection() else { return };
        let input = std::mem::take(&mut connection.input);
        let mut taken = 0;
        let result = self.session.replies(&input, &mut taken);
        assert!(result.is_ok(), "the session ends: {result:?}");
        if let Some(connection) = self.session.connection() {
            connection.input.extend_from_slice(&input[taken..]);
        }
    }

    /// The connection that the session holds is lost.
    fn cut(&mut self, backends: &mut [Backend], database: &mut Database, cuts: &mut usize) -> bool {
        let Some(connection) = self.session.connection() else { return false };
        *cuts -= 1;
        backends[connection.backend].die(database);
        if let Err(end) = self.session.server_gone() {
            self.end(&end, backends, database);
        }
        true
    }

    /// Handles a unit that a lane has returned.
    fn handle_returned(&mut self) -> bool {
        if !matches!(self.need, Some(Need::Lanes)) {
            return false;
        }
        let Some((_, returned)) = self.answers.borrow_mut().take_handed() else { return false };
        match returned {
            SimReturned::Alone(envelope) => self.session.begin_alone(envelope),
            SimReturned::Resubmit(envelope) => self.session.resubmit(envelope),
        }
        true
    }

    fn end(&mut self, end: &SessionEnd, backends: &mut [Backend], database: &mut Database) {
        self.is_over = true;
        if let Some(connection) = self.session.connection() {
            backends[connection.backend].die(database);
        }
        if let SessionEnd::Problem(Problem { code, .. }) = end {
            assert_eq!(*code, "08006", "no other reason to end a session");
        }
        self.session.end();
    }
}

fn name_of(need: Option<&Need<SimEnvironment>>) -> &'static str {
    match need {
        Some(Need::Event) => "an event",
        Some(Need::Reply) => "a reply",
        Some(Need::Lanes) => "its lanes",
        Some(Need::Notifications) => "notifications",
        _ => "something else",
    }
}
