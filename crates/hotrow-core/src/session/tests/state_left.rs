//! The state that simulated sessions leave on their connections: they move to pools with their settings, hand their channels
//! over, and return connections on which nothing of them may be left.

use hotrow_wire::backend::{Status, tag};
use hotrow_wire::split;

use super::client::Client;
use super::connection::SimConnection;
use super::environment::as_settings;
use super::postgres::{Backend, UTC};
use super::world::World;
use crate::classify::Effect;
use crate::notifications::MARKER_CHANNEL;
use crate::session::statement::own_statement;
use crate::session::{Moved, StateLeft, TakesOver};
use crate::settings::Settings;

impl World {
    /// Moves a session to the pool with these settings. Sometimes there cannot be one more pool.
    pub(super) fn move_to_pool(&mut self, number: usize, backend: usize, settings: &Settings) {
        let moved = match self.random.u8(..6) {
            0 if self.clients[number].session.may_go_to_login() => Moved::ToLogIn,
            2.. if self.has_room => Moved::There,
            _ => Moved::Nowhere,
        };
        let client = &mut self.clients[number];
        match moved {
            Moved::There => {
                client.settings.replace(settings.iter().map(owned).collect());
                self.backends[backend].set_settings(&client.settings.borrow());
            }
            Moved::ToLogIn => client.settings.borrow_mut().clear(),
            Moved::Nowhere => {}
        }
        client.session.moved(moved);
        self.count_step(if moved == Moved::There { "moved" } else { "stays" });
        if !std::mem::take(&mut self.is_asked) {
            self.count_step("certain");
        }
    }

    /// The same for a session without a connection. Pools are closed if nobody uses them for a while.
    pub(super) fn enter_pool(&mut self, number: usize, settings: &Settings) {
        let client = &mut self.clients[number];
        let is_open = self.has_room && self.random.u8(..4) > 0;
        let time_zone = |client: &Client| {
            client.settings.borrow().get("TimeZone").cloned().unwrap_or_else(|| UTC.to_owned())
        };
        let before = time_zone(client);
        if is_open {
            client.settings.replace(settings.iter().map(owned).collect());
        }
        let told = Some(time_zone(client)).filter(|now| *now != before);
        let told = told.map(|now| ("TimeZone".to_owned(), now));
        client.session.entered(is_open.then(|| told.into_iter().collect()));
        self.count_step(if is_open { "entered" } else { "not entered" });
    }

    /// The connection has nothing that keeps a session there.
    pub(super) fn check_is_free(&mut self, number: usize) {
        let session = &mut self.clients[number].session;
        let channels = session.shared_channels().clone();
        let backend = &self.backends[session.connection().expect("it is held").backend];
        let is_free =
            !backend.has_temporary() && !has_client_names(backend) && backend.listens.channels == channels;
        assert!(is_free, "a session that keeps its connection changes the settings there");
    }

    /// The state of a connection in the server's catalog and settings.
    pub(super) fn query_state(&mut self, number: usize) {
        self.is_asked = true;
        let session = &mut self.clients[number].session;
        let connection = session.connection().expect("state is left on a connection");
        let backend = &self.backends[connection.backend];
        let prepared =
            backend.statements.keys().filter(|name| own_statement(name.as_bytes()).is_some()).count();
        let found = StateLeft {
            effect: Effect {
                prepared: has_client_names(backend),
                temporary: backend.has_temporary(),
                ..Effect::NONE
            },
            channels: Some(backend.listens.channels.clone()),
            speaks_utf8: self.random.u8(..8) > 0,
            settings: Some(as_settings(&backend.listed_settings())),
            prepared: Some(prepared),
        };
        session.state_found(found);
    }

    /// Another connection takes over at a marker.
    pub(super) fn take_over(&mut self, number: usize, takes_over: TakesOver) {
        let channels = match &takes_over {
            TakesOver::Shared(channels) => channels.clone(),
            TakesOver::Held => Vec::new(),
        };
        if !channels.is_empty() && self.random.u8(..4) == 0 {
            return self.clients[number].session.took_over(false); // there are too many channels
        }
        self.count_step(if matches!(takes_over, TakesOver::Held) { "held" } else { "shared" });
        let client = &mut self.clients[number];
        if self.loses_held && matches!(takes_over, TakesOver::Held) {
            return client.session.took_over(false);
        }
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
        self.clients[number].session.took_over(true);
    }

    /// A session returns a connection. Another client must not find state of this client on it.
    pub(super) fn release(&mut self, number: usize, mut connection: SimConnection, reusable: bool) {
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
        assert!(!backend.has_unlisted(), "state that no view lists is left on a connection");
        backend.settings.clear();
        backend.listens.channels.clear();
        assert!(!has_client_names(backend), "a name is left on a connection");
        assert_eq!(backend.status, Status::Idle, "a transaction is left open");
        self.idle.push((settings, connection));
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Whether there are statements with names that the gateway does not use.
fn has_client_names(backend: &Backend) -> bool {
    backend.statements.keys().any(|name| !name.is_empty() && own_statement(name.as_bytes()).is_none())
}
