//! The gateway as one session sees it: its pool, its mailbox, and what the console shows of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hotrow_connect::lock::Lock;
use hotrow_core::admission::ReportedSettings;
use hotrow_core::classify::{Alters, Packing};
use hotrow_core::expect::PreparedStatements;
use hotrow_core::key::KeyName;
use hotrow_core::limits;
use hotrow_core::normalise::Shape;
use hotrow_core::pack_mode::PackMode;
use hotrow_core::replica::{LsnBound, ReadSource};
use hotrow_core::session::{self, Proof, Verdict};
use hotrow_core::settings::Settings;
use hotrow_lane::affinity::LaneId;
use hotrow_lane::answers::Answers;
use hotrow_lane::key::Key;
use hotrow_lane::lane::LaneKind;
use hotrow_wire::backend::Problem;

use crate::lane::{Envelope, Mailbox, Packed, Returned, newest_connection};
use crate::metrics::{METRICS, microseconds};
use crate::pool::Pool;
use crate::pool::directory::Directory;
use crate::pool::listener::{self, NotificationInbox, Subscriber, Subscription};
use crate::pool::shadow::ShadowedUnit;
use crate::server::held::{HeldConnection, OpenConnection};
use crate::server::rows::RowPlace;
use crate::session::control::Control;
use crate::statements::{Statement, Statements};

/// The gateway around one session.
pub struct Environment {
    /// The session's pool.
    pub pool: Arc<Pool>,
    /// All pools.
    pub directory: Arc<Directory>,
    /// Its replies.
    pub mailbox: Arc<Mailbox>,
    /// Its handle for cancel requests and for the console.
    pub control: Arc<Control>,
    /// When the last bytes of the client arrived.
    pub since: Instant,
    /// When the session last looked for room for a pool with its settings.
    pub looked_for_room: Instant,
    /// Its share of the connection that listens for the clients of its role.
    pub subscription: Option<Arc<Subscription<NotificationInbox>>>,
    /// The server's settings that the client was told.
    pub reported: ReportedSettings,
    /// A statement without a verdict, which is passed through for that reason.
    pub undecided: Lock<Option<Arc<Statement>>>,
    /// The unit under way that would be packed, in shadow mode.
    pub shadowed: Option<ShadowedUnit>,
}

impl session::Environment for Environment {
    type Statement = Statement;
    type Connection = HeldConnection;
    type Envelope = Envelope;
    type Returned = Returned;
    type Place = RowPlace;

    fn simple(&self, shape: &Shape<'_>) -> Arc<Statement> {
        self.pool.context.statements.simple(shape)
    }

    fn knows_simple(&self, shape: &Shape<'_>) -> bool {
        self.pool.context.statements.knows_simple(shape)
    }

    fn extended(&self, text: &[u8], types: &[u8]) -> Arc<Statement> {
        self.pool.context.statements.extended(text, types)
    }

    fn knows_extended(&self, text: &[u8], types: &[u8]) -> bool {
        self.pool.context.statements.knows_extended(text, types)
    }

    fn next_parse(&self) -> u64 {
        self.pool.context.statements.next_parse()
    }

    fn last_parse(&self) -> u64 {
        self.pool.context.statements.last_parse()
    }

    fn verdict(&self, statement: &Arc<Statement>) -> Option<Verdict> {
        let verdict = self.pool.known_verdict(statement);
        if verdict.is_none() {
            *self.undecided.lock() = Some(statement.clone());
        }
        verdict
    }

    fn early_verdict(&self, statement: &Arc<Statement>) -> Option<Verdict> {
        self.pool.known_verdict(statement)
    }

    fn packing(&self, statement: &Statement) -> Option<Arc<Packing>> {
        self.pool.packing(statement)
    }

    fn waits_for_verdicts(&self) -> bool {
        !self.pool.config().verdict_wait.is_zero()
    }

    fn enter_row(&self, row: Key, name: Box<KeyName>) -> (RowPlace, usize) {
        self.pool.database_state().rows.enter_row(row, name)
    }

    fn passes(&self, statement: &Statement) -> bool {
        self.pool.passes(statement, self.since)
    }

    fn proof(&self, statement: &Arc<Statement>, as_pool: bool) -> Option<Proof> {
        self.pool.proof(statement, as_pool)
    }

    fn known_reply(&self, statement: &Statement) -> Option<Bytes> {
        statement.known_reply(self.pool.catalog_epoch(), self.pool.config().catalog_age)
    }

    fn learn_reply(&self, held: &HeldConnection, statement: &Statement, reply: Option<Bytes>) {
        let epoch = self.pool.catalog_epoch(); // before the look: connections are retired before a new epoch begins
        if held.is_of_present_generation() {
            statement.learn_reply(reply, epoch);
        }
    }

    fn successor(&self, statement: &Statement) -> Arc<Statement> {
        self.pool.context.statements.successor(statement)
    }

    fn pack_mode(&self) -> PackMode {
        self.pool.pack_mode()
    }

    fn is_primary(&self) -> bool {
        self.pool.is_primary()
    }

    fn with_types(&self, statement: &Statement, types: &Bytes) -> Arc<Statement> {
        self.pool.context.statements.with_types(statement, types)
    }

    fn counted(&self, statement: &Arc<Statement>) -> Arc<Statement> {
        Statements::counted(statement)
    }

    fn write_deferred(&self) {
        METRICS.writes_deferred.inc();
    }

    fn foretold_wrong(&self) {
        METRICS.foretold_wrong.inc();
    }

    fn has_settings(&self) -> bool {
        !self.pool.identity.settings().is_empty()
    }

    fn settings(&self) -> Settings {
        self.pool.identity.settings().clone()
    }

    fn may_find_room(&mut self) -> bool {
        let again =
            self.since.duration_since(self.looked_for_room) >= Duration::from_millis(limits::POOL_ROOM_MS);
        if again {
            self.looked_for_room = self.since;
        }
        again
    }

    fn speaks_utf8(&self) -> bool {
        self.pool.speaks_utf8()
    }

    fn leave_unused_databases(&self) {
        self.directory.leave_unused_databases();
    }

    fn catalog_changed(&self, alters: Alters) {
        self.pool.catalog_changed(alters);
    }

    fn traces(&self) -> bool {
        self.pool.context.traces.is_some()
    }

    fn envelope(&self, unit: Packed) -> Envelope {
        Envelope::new(unit, self.mailbox.clone(), self.since)
    }

    fn assign(&self, unit: &Packed, only: Option<LaneId>) -> Option<LaneId> {
        self.pool.assign(unit, only)
    }

    fn source(&self, bound: Option<&LsnBound>, unit: &Packed) -> ReadSource {
        self.pool.read_source(bound, unit)
    }

    fn newest_connection(&self) -> u64 {
        newest_connection()
    }

    fn assign_replica(&self, replica: usize, unit: &Packed) -> Option<LaneId> {
        self.pool.assign_replica(replica, unit).inspect(|_| self.control.activity.count_on_replica())
    }

    fn submit(&self, lane: LaneId, first: bool, envelope: Envelope) {
        self.pool.submit(lane, self.mailbox.session, first, envelope);
    }

    fn answers<R>(&self, with: impl FnOnce(&mut Answers<Returned>) -> R) -> R {
        self.mailbox.answers(with)
    }

    fn is_full(&self) -> bool {
        self.mailbox.is_full()
    }

    fn message_bytes_max(&self) -> usize {
        self.pool.config().message_bytes_max
    }

    fn process_id(&self) -> u32 {
        self.control.process_id
    }

    fn client_renamed(&self, name: &str) {
        self.control.activity.rename(name);
    }

    fn setting_reported(&mut self, setting: &str, value: &str) {
        self.reported.report(setting, value);
    }

    fn unit_passed(&self) {
        METRICS.passed_through.inc();
        self.pool.context.shared.traffic.passed.inc();
        self.control.activity.count_passed();
        self.control.activity.passed_since(self.since);
    }

    fn unit_answered(&self, ends_transaction: bool) {
        let traffic = &self.pool.context.shared.traffic;
        if ends_transaction {
            traffic.transactions.inc();
        }
        if let Some(time) = self.control.activity.passed_time() {
            let time = microseconds(time);
            METRICS.passed_microseconds.record(time);
            traffic.passed_microseconds.add(time);
        }
    }

    fn unit_packed(&self) {
        self.control.activity.count_packed();
    }

    fn statements_shadowed(&self, count: u64, would_pack: bool) {
        self.pool.context.shared.traffic.shadow.add(count, would_pack, self.since);
    }

    fn unit_shadowed(&mut self, unit: &Packed) {
        if unit.kind() == LaneKind::Write {
            self.shadowed = Some(ShadowedUnit::begin(&self.pool, self.mailbox.session, unit));
        }
    }

    fn shadow_over(&mut self) {
        self.shadowed = None;
    }

    fn outcome_unknown(&self) {
        METRICS.unknown.inc();
    }

    fn server_closes(&self, message: &[u8]) {
        tracing::warn!(message = %String::from_utf8_lossy(message), "the server closes a connection");
    }

    fn disconnected(&self) {
        self.control.disconnected();
    }

    fn next_notification(&self) -> Option<Bytes> {
        self.subscription.as_ref()?.subscriber.pop()
    }

    fn notifications_up_to(&self, body: &[u8]) -> usize {
        self.subscription.as_ref().map_or(0, |subscription| subscription.subscriber.count_up_to(body))
    }

    fn notifications_end(&self) -> Option<Problem> {
        self.subscription.as_ref()?.subscriber.problem()
    }

    fn notifications_lost(&self) {
        if let Some(subscription) = &self.subscription {
            subscription.subscriber.ended(&listener::lost());
        }
    }

    fn channels_ended(&mut self, ended: &[String], left: usize) {
        if let Some(subscription) = &self.subscription {
            subscription.remove(ended);
        }
        self.control.activity.set_channels(left);
        if left == 0 {
            self.subscription = None;
        }
    }
}

impl session::Connection for HeldConnection {
    fn output(&mut self) -> &mut BytesMut {
        &mut self.upstream.output
    }

    fn prepared(&self) -> &PreparedStatements {
        &self.upstream.prepared
    }

    fn prepared_mut(&mut self) -> &mut PreparedStatements {
        &mut self.upstream.prepared
    }

    fn process_id(&self) -> u32 {
        self.upstream.process_id
    }

    fn moved_sequence(&self) -> bool {
        self.moved_sequence
    }

    fn set_moved_sequence(&mut self) {
        self.moved_sequence = true;
    }

    fn name(&self) -> &str {
        OpenConnection::name(self)
    }

    fn default_name(&self) -> &str {
        OpenConnection::default_name(self)
    }

    fn setting_changed(&mut self, name: &str, value: &str) {
        OpenConnection::setting_changed(self, name, value);
    }

    fn kept_for_long(&mut self) {
        self.release_processor();
    }
}

impl session::Envelope<Statement> for Envelope {
    fn unit(&self) -> &Packed {
        &self.unit
    }

    fn address(&mut self, slot: u64, changes_names: bool) {
        self.slot = slot;
        self.changes_names = changes_names;
    }

    fn set_lsn_bound(&mut self, bound: LsnBound) {
        self.lsn_bound = Some(bound);
    }
}
