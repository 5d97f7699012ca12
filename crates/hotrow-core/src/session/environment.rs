//! What a session needs from the gateway around it. Nothing here waits: a step that takes time is a [`Need`].

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hotrow_lane::affinity::LaneId;
use hotrow_lane::answers::Answers;
use hotrow_lane::key::Key;
use hotrow_lane::row_queue::Request;
use hotrow_wire::SqlState;
use hotrow_wire::backend::Problem;

use super::{Proof, Statement, TakesOver, Verdict};
use crate::classify::{Alters, Packing};
use crate::expect::PreparedStatements;
use crate::key::KeyName;
use crate::normalise::Shape;
use crate::pack_mode::PackMode;
use crate::replica::{LsnBound, ReadSource};
use crate::settings::Settings;
use crate::unit::Packed;

pub type StatementOf<E> = Arc<<E as Environment>::Statement>;

/// The gateway around one session.
pub trait Environment: Sized {
    type Statement: Statement;
    /// An upstream connection.
    type Connection: Connection;
    /// A unit on its way to a lane and back.
    type Envelope: Envelope<Self::Statement>;
    /// What lanes hand back to the session.
    type Returned;
    /// A place among the transactions that work on the same rows. It is given up when it is dropped.
    type Place: Place;

    /// The statement of a simple query's shape.
    fn simple(&self, shape: &Shape<'_>) -> StatementOf<Self>;
    /// Whether the statement of a simple query's shape is known.
    fn knows_simple(&self, shape: &Shape<'_>) -> bool;
    /// The statement of a Parse.
    fn extended(&self, text: &[u8], types: &[u8]) -> StatementOf<Self>;
    /// Whether the statement of a Parse is known.
    fn knows_extended(&self, text: &[u8], types: &[u8]) -> bool;
    /// The number of a client's new Parse in the pool.
    fn next_parse(&self) -> u64;
    /// The number of the last Parse of a client.
    fn last_parse(&self) -> u64;
    /// The verdict about a statement. If it is not known, the catalog is asked in time for a later run.
    fn verdict(&self, statement: &StatementOf<Self>) -> Option<Verdict>;
    /// The same for a caller that does not wait for it.
    fn early_verdict(&self, statement: &StatementOf<Self>) -> Option<Verdict>;
    /// How a statement is packed, if that was decided from the present state of the catalog.
    fn packing(&self, statement: &Self::Statement) -> Option<Arc<Packing>>;
    /// Whether a statement without a verdict waits for it.
    fn waits_for_verdicts(&self) -> bool;
    /// A transaction at the server comes to this row. Returns its place, and the number of other transactions that work
    /// on the row.
    fn enter_row(&self, row: Key, name: Box<KeyName>) -> (Self::Place, usize);
    /// Whether every unit with this statement is known to be passed through.
    fn passes(&self, statement: &Self::Statement) -> bool;
    /// The state that a statement is known to leave behind. `as_pool` is whether its names mean what they mean in the pool.
    fn proof(&self, statement: &StatementOf<Self>, as_pool: bool) -> Option<Proof>;
    /// The server's reply in the pool to a statement that only clears state, without ReadyForQuery, if it is known at present.
    /// If it has not been learned for long, it is withheld from one caller, whose session gets it from the server again.
    fn known_reply(&self, statement: &Self::Statement) -> Option<Bytes>;
    /// The server has answered such a statement on this connection with a reply that other sessions of the pool can get too,
    /// or with one that is not repeated.
    fn learn_reply(&self, held: &Self::Connection, statement: &Self::Statement, reply: Option<Bytes>);
    /// The statement that a superseded one would be if it were prepared now.
    fn successor(&self, statement: &Self::Statement) -> StatementOf<Self>;
    /// The same statement with these declared types, in the session's pool. It is not analysed again.
    fn with_types(&self, statement: &Self::Statement, types: &Bytes) -> StatementOf<Self>;
    /// The same write, which fails if it changes another number of rows than one.
    fn counted(&self, statement: &StatementOf<Self>) -> StatementOf<Self>;
    /// A write is held back.
    fn write_deferred(&self);
    /// The outcome of a transaction's writes was foretold wrongly.
    fn foretold_wrong(&self);
    /// Whether the session's pool has settings that its clients have set in their sessions.
    fn has_settings(&self) -> bool;
    fn settings(&self) -> Settings;
    /// Whether there may be room for one more pool with settings. True at most once in a while: trying costs.
    fn may_find_room(&mut self) -> bool;
    /// Whether the connections of the pool begin with UTF-8 as the client's encoding.
    fn speaks_utf8(&self) -> bool;
    /// What happens with units of the pool's clients that can be packed.
    fn pack_mode(&self) -> PackMode;
    /// Whether the server has reported that it is a primary.
    fn is_primary(&self) -> bool;
    /// The catalog may have changed in this way.
    fn catalog_changed(&self, alters: Alters);
    /// The connections to databases that no client uses are closed, because they would be in the way of the statement that the
    /// server gets next.
    fn leave_unused_databases(&self);

    /// Whether batches are traced.
    fn traces(&self) -> bool;
    /// An envelope for a unit whose last bytes have just arrived.
    fn envelope(&self, unit: Packed<StatementOf<Self>>) -> Self::Envelope;
    /// The lane for a unit. If `only` is set, no other lane will do.
    fn assign(&self, unit: &Packed<StatementOf<Self>>, only: Option<LaneId>) -> Option<LaneId>;
    /// Where a read runs in a session whose reads run on replicas, and whose earlier reads had this bound.
    fn source(&self, bound: Option<&LsnBound>, unit: &Packed<StatementOf<Self>>) -> ReadSource;
    /// The number of the newest connection to a replica.
    fn newest_connection(&self) -> u64;
    fn assign_replica(&self, replica: usize, unit: &Packed<StatementOf<Self>>) -> Option<LaneId>;
    /// Gives a unit to a lane. `first` is whether no other unit of the session is under way.
    fn submit(&self, lane: LaneId, first: bool, envelope: Self::Envelope);

    /// Reads or changes the replies to the client.
    fn answers<R>(&self, with: impl FnOnce(&mut Answers<Self::Returned>) -> R) -> R;
    /// Whether the client has to read, or be answered, before more of its messages are handled.
    fn is_full(&self) -> bool;
    /// The largest message of the client.
    fn message_bytes_max(&self) -> usize;
    /// The process ID that the client was told.
    fn process_id(&self) -> u32;
    /// The client has another name.
    fn client_renamed(&self, name: &str);
    /// The connection that the session holds tells the client this value of a setting of the server.
    fn setting_reported(&mut self, setting: &str, value: &str);
    /// A unit was passed through.
    fn unit_passed(&self);
    /// A unit that was passed through is answered. Its transaction has ended, or continues.
    fn unit_answered(&self, ends_transaction: bool);
    /// A unit went to a lane.
    fn unit_packed(&self);
    /// In shadow mode: this number of statements is passed through, and would be packed, or would not.
    fn statements_shadowed(&self, count: u64, would_pack: bool);
    /// In shadow mode: a unit begins that a lane would run.
    fn unit_shadowed(&mut self, unit: &Packed<StatementOf<Self>>);
    /// That unit is over.
    fn shadow_over(&mut self);
    /// The outcome of a unit is unknown.
    fn outcome_unknown(&self);
    /// The server has said why it closes a connection on which a unit runs alone.
    fn server_closes(&self, message: &[u8]);
    /// The connection that the session held is gone.
    fn disconnected(&self);

    /// The body of the next NotificationResponse that the shared connection has received for the session.
    fn next_notification(&self) -> Option<Bytes>;
    /// How many notifications wait up to this one, or 0 if it does not wait.
    fn notifications_up_to(&self, body: &[u8]) -> usize;
    /// Why the session gets no more notifications, if it had to get more.
    fn notifications_end(&self) -> Option<Problem>;
    /// The session may have missed notifications: it gets no more.
    fn notifications_lost(&self);
    /// The shared connection reports these channels no longer to the session, and this number of others.
    fn channels_ended(&mut self, ended: &[String], left: usize);
}

/// An upstream connection that a session holds.
pub trait Connection {
    /// The messages that the server gets next.
    fn output(&mut self) -> &mut BytesMut;
    fn prepared(&self) -> &PreparedStatements;
    /// The same, to be changed.
    fn prepared_mut(&mut self) -> &mut PreparedStatements;
    /// The process ID of its backend.
    fn process_id(&self) -> u32;
    /// Whether its backend may remember sequence values of the session.
    fn moved_sequence(&self) -> bool;
    /// Records that it may.
    fn set_moved_sequence(&mut self);
    /// The client's name as the server stores it.
    fn name(&self) -> &str;
    /// The name of a client that sets none.
    fn default_name(&self) -> &str;
    /// Records a setting that the server has reported: `application_name` is the client's name.
    fn setting_changed(&mut self, name: &str, value: &str);
    /// The session keeps the connection for long, and must not hold up short work of others.
    fn kept_for_long(&mut self);
}

/// A place among transactions that begin with the same statement, or work on the same row.
pub trait Place {
    /// The transaction has met this many others on a row.
    fn found_others(&mut self, others: usize);
}

/// A unit on its way to a lane and back.
pub trait Envelope<S> {
    fn unit(&self) -> &Packed<Arc<S>>;
    /// Sets the slot of its answer, and whether its success changes names of statements.
    fn address(&mut self, slot: u64, changes_names: bool);
    /// Sets what a replica must show before the unit runs there.
    fn set_lsn_bound(&mut self, bound: LsnBound);

    /// Whether no lane can run it any more: one of its statements has lost its credit, or is superseded.
    fn must_leave_lanes(&self) -> bool
    where
        S: Statement,
    {
        self.unit().runs().any(|run| !run.statement.has_credit() || run.statement.is_superseded())
    }
}

/// What a session needs before it can go on.
pub enum Need<E: Environment> {
    /// Something new: from the client, from the server if a connection is held, or room for replies.
    Event,
    /// Something new from the server. The client's next messages are not read.
    Reply,
    /// One more of the units in lanes is answered or given back.
    Lanes,
    Connection,
    /// A place in a queue of transactions. If it is that of a row, with the row in words.
    Turn(Request, Option<Box<KeyName>>),
    /// The verdict about this statement, which may be a call that waits or is merged.
    Verdict(StatementOf<E>),
    /// The statement of this text is long, and is to be classified on a thread of its own.
    Classified(LongText),
    /// The server has to be told the client's name again.
    Rename,
    /// These statements are prepared on the connection, before settings change that decide what their texts mean.
    Prepared(Vec<StatementOf<E>>),
    /// The state that is left on the connection.
    StateLeft,
    /// The shared connection, or the held one, takes over channels at a marker.
    TakeOver(TakesOver),
    /// The pool whose clients have these settings, which the connection has.
    Move(Settings),
    /// The same, if that pool is open and the session holds no connection.
    Enter(Settings),
    /// The settings of its pool on its connection.
    Restore,
    /// A replica that has all that is committed on the primary now.
    Replica,
    /// Everything that was notified before now.
    Notifications,
    /// The session needs its connection no longer. It is reused, or closed.
    Release {
        connection: E::Connection,
        /// Whether it can be reused.
        reusable: bool,
    },
}

/// The text of a statement that takes a while to be classified.
#[derive(Debug)]
pub enum LongText {
    /// Of a simple query.
    Simple(String),
    /// Of a Parse, with its types.
    Extended(Vec<u8>, Vec<u8>),
}

/// Why a session ends.
#[derive(Debug)]
pub enum SessionEnd {
    /// The client has sent Terminate or is gone.
    Client,
    /// The client gets this error and the connection is closed.
    Problem(Problem),
    /// The server has closed the connection that the session holds, and the client must get nothing more: it
    /// has the server's error, or a message was cut off.
    Server,
}

impl From<hotrow_wire::Error> for SessionEnd {
    fn from(error: hotrow_wire::Error) -> Self {
        SessionEnd::Problem(Problem::fatal(
            SqlState::ProtocolViolation,
            error.to_string(),
            "The connection is closed, because later messages cannot be read reliably. Check the client's driver.",
        ))
    }
}

/// Why a message is not handled now.
pub(super) enum Stop<E: Environment> {
    /// It is handled again from its beginning when this is there.
    Need(Need<E>),
    End(SessionEnd),
}

impl<E: Environment, T: Into<SessionEnd>> From<T> for Stop<E> {
    fn from(end: T) -> Self {
        Stop::End(end.into())
    }
}
