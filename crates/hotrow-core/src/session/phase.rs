//! The phases of a session: what it has of the server at present.

use super::Environment;
use super::begun::Begun;
use super::holding::{Holding, Room};

/// Exactly one of these at a time.
#[expect(
    clippy::large_enum_variant,
    reason = "a connection is taken and given back for each unit that is passed through"
)]
pub(super) enum Phase<E: Environment> {
    /// It is in no transaction, and holds no connection. Lanes may have units of it.
    Free,
    /// It is in a transaction that the server has not begun, and holds no connection.
    Begun(Begun),
    /// It holds a connection.
    Held(Holding<E>),
}

impl<E: Environment> Phase<E> {
    /// Whether lanes can get units of the session.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Phase::Free)
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self, Phase::Held(_))
    }

    /// The connection, with the state of its work.
    pub(super) fn held(&self) -> Option<&Holding<E>> {
        match self {
            Phase::Held(holding) => Some(holding),
            Phase::Free | Phase::Begun(_) => None,
        }
    }

    /// The same, to change it.
    pub(super) fn held_mut(&mut self) -> Option<&mut Holding<E>> {
        match self {
            Phase::Held(holding) => Some(holding),
            Phase::Free | Phase::Begun(_) => None,
        }
    }

    /// The transaction that the client has begun and the server has not.
    pub(super) fn begun(&self) -> Option<&Begun> {
        match self {
            Phase::Free => None,
            Phase::Begun(begun) => Some(begun),
            Phase::Held(holding) => holding.begun.as_ref(),
        }
    }

    /// The same, to change it.
    pub(super) fn begun_mut(&mut self) -> Option<&mut Begun> {
        match self {
            Phase::Free => None,
            Phase::Begun(begun) => Some(begun),
            Phase::Held(holding) => holding.begun.as_mut(),
        }
    }

    /// The client begins a transaction that the server does not know.
    pub(super) fn begin(&mut self, begun: Begun) {
        debug_assert!(self.begun().is_none(), "a transaction begins in another one");
        match self {
            Phase::Held(holding) => holding.begun = Some(begun),
            Phase::Free | Phase::Begun(_) => *self = Phase::Begun(begun),
        }
    }

    /// That transaction ends, or begins at the server.
    pub(super) fn take_begun(&mut self) -> Option<Begun> {
        match self {
            Phase::Free => None,
            Phase::Held(holding) => holding.begun.take(),
            Phase::Begun(_) => match std::mem::replace(self, Phase::Free) {
                Phase::Begun(begun) => Some(begun),
                Phase::Free | Phase::Held(_) => None,
            },
        }
    }

    /// The session has got a connection.
    pub(super) fn connect(&mut self, connection: E::Connection, room: Room<E>) {
        debug_assert!(!self.is_held(), "a session holds one connection");
        let begun = self.take_begun();
        *self = Phase::Held(Holding::new(connection, begun, room));
    }

    /// The session loses its connection, if it holds one, or gives it back.
    pub(super) fn disconnect(&mut self) -> Option<Holding<E>> {
        if !self.is_held() {
            return None;
        }
        let Phase::Held(mut holding) = std::mem::replace(self, Phase::Free) else { return None };
        if let Some(begun) = holding.begun.take() {
            self.begin(begun);
        }
        Some(holding)
    }
}
