//! What a session knows about itself for packing. A statement is packed only if the session's connection has the same settings as
//! the lane's, and nothing else that a statement could see. Whatever may have left something there ends packing for the session.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hotrow_core::session::RunOutcome;
use hotrow_gateway::lanes::{ToLane, Unblock};
use hotrow_lane::key::Key;
use hotrow_lane::lane::{Claim, Claimed, Unit};
use hotrow_mysql_core::reader::{self, Kind};
use hotrow_mysql_core::table;
use hotrow_mysql_wire::capabilities::{STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION};
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::OK;
use hotrow_mysql_wire::native::Hash;
use hotrow_mysql_wire::scan::Scanned;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::counting::NotPacked;
use crate::crowd::Entered;
use crate::lane::{FINGERPRINT, Fate, Statement, fingerprint};
use crate::limits;
use crate::logged_in::LoggedIn;
use crate::packing::harmless::{self, Harm};
use crate::packing::left::{CLEAR, Left, shows_diagnostics};
use crate::packing::pools::{Identity, Pool, Pools};
use crate::packing::prepared::Prepared;
use crate::packing::rights::{RIGHTS, Rights};
use crate::refusal::Refusal;
use crate::server_side::ServerSide;

/// Lanes can give a statement back for other facts about its table. After this number, it is passed through.
const TRIES_MAX: usize = 3;

/// The first letter of the fingerprint of a session in strict mode.
const STRICT: char = 's';

/// What the session does with a statement.
#[derive(Debug)]
pub enum Run {
    /// The gateway answers with these payloads.
    Own(Vec<Vec<u8>>),
    /// The session runs it on its own connection. Units of its row may wait for the end of that.
    Pass(Option<Unblock<Statement>>),
    /// The same, with this payload instead of its own.
    PassAs(Vec<u8>, Option<Unblock<Statement>>),
    /// The same, and the first packet of the answer goes here.
    PassAndTell(FirstPacket),
}

/// A change of a session's database.
struct Entering {
    database: Vec<u8>,
    /// The rights as they were last seen before it.
    rights: Option<String>,
    told: oneshot::Receiver<Scanned>,
}

/// Where the first packet of an answer of the server goes. That of a PREPARE has the statement's ID.
pub type FirstPacket = oneshot::Sender<Scanned>;

/// A session's part in packing.
pub struct Packer {
    pools: Arc<Pools>,
    identity: Identity,
    proof: (Hash, Vec<u8>),
    session: u64,
    /// The ID of its connection.
    thread: u32,
    pool: Option<Arc<Pool>>,
    /// A change of its database whose outcome the server has not told yet.
    entering: Option<Entering>,
    rights: Rights,
    /// It packs no more.
    is_pinned: bool,
    /// Why the last statement was not packed, unless it is not packable or the session packs no more.
    not_packed: Option<NotPacked>,
    /// The last statement, if it could be packed and its reply is not expected yet.
    entered: Option<Entered>,
    has_packed: bool,
    /// What the last statement has left, if that was packed. The session's own connection does not know of it.
    left: Option<Left>,
    /// Number of changes of its settings.
    settings: u64,
    prepared: HashMap<u32, Prepared>,
    /// Statements whose ID the server has not told yet.
    preparing: Vec<(Prepared, oneshot::Receiver<Scanned>)>,
}

impl Packer {
    /// None if the gateway cannot log in as the client.
    pub fn new(pools: Arc<Pools>, logged_in: &LoggedIn) -> Option<Self> {
        let response = &logged_in.response;
        let identity = Identity {
            user: response.user.clone(),
            database: response.database.clone(),
            capabilities: response.capabilities,
            collation: response.collation,
            sets: Vec::new(),
            fingerprint: String::new(),
        };
        let is_plain = |name: &Vec<u8>| name.is_ascii() && !name.iter().any(|byte| b"\\'\0".contains(byte));
        if !identity.database.as_ref().is_none_or(is_plain) {
            return None; // the name is written in the lane's questions
        }
        let session = pools.next_session();
        let proof = logged_in.proof.clone()?;
        Some(Packer {
            pools,
            identity,
            proof,
            session,
            thread: logged_in.thread,
            pool: None,
            entering: None,
            is_pinned: logged_in.rights.is_none(),
            rights: Rights::of(logged_in.rights.as_deref()),
            not_packed: None,
            entered: None,
            has_packed: false,
            left: None,
            settings: 0,
            prepared: HashMap::new(),
            preparing: Vec::new(),
        })
    }

    /// Why the last statement was not packed.
    pub fn why(&mut self) -> NotPacked {
        let reason = if self.is_pinned { RunOutcome::Pinned } else { RunOutcome::NotPackable };
        self.not_packed.take().unwrap_or(NotPacked::Because(reason))
    }

    /// The last statement, if it could be packed and runs on the session's own connection. It counts until its reply has ended.
    pub fn entered(&mut self) -> Option<Entered> {
        self.entered.take()
    }

    /// A command comes whose bytes are not all here, or that has no text. What is before it has been sent.
    pub async fn command(&mut self, command: Command, server: &mut ServerSide) -> io::Result<()> {
        if matches!(command, Command::Quit | Command::StmtClose) {
            return Ok(());
        }
        if command == Command::Ping {
            return self.restore_warnings(server).await; // it sets the number of rows itself
        }
        self.is_pinned |= !matches!(command, Command::Statistics | Command::StmtReset | Command::StmtFetch);
        self.restore(server).await
    }

    /// Another connection, or its statement, is killed. If the server agrees, a statement in a lane is cancelled.
    pub async fn kill(&mut self, thread: u32, server: &mut ServerSide) -> io::Result<FirstPacket> {
        self.pin(server).await?;
        let (told, answer) = oneshot::channel::<Scanned>();
        let pools = self.pools.clone();
        tokio::spawn(async move {
            if answer.await.is_ok_and(|packet| packet.head().first() == Some(&OK)) {
                pools.cancel(thread);
            }
        });
        Ok(told)
    }

    /// A statement is prepared. Returns where its ID goes, if the statement may be packed.
    pub async fn prepare(&mut self, text: &[u8], server: &mut ServerSide) -> io::Result<Option<FirstPacket>> {
        self.settle().await;
        let text = std::str::from_utf8(text).unwrap_or_default();
        let prepared = Prepared::of(text, self.settings, self.identity.database.as_deref());
        let prepared = prepared.filter(|_| !self.is_pinned);
        let Some(prepared) = prepared else {
            // Its executions can leave what it leaves.
            let text = text.replace('?', "1");
            let is_harmless = match harmless::judge(&text) {
                Harm::None => true,
                Harm::Tables(tables) => self.calls_nothing(self.database(), &tables).await,
                Harm::Setting(_) | Harm::Database(_) | Harm::Any => false,
            };
            self.is_pinned |= !is_harmless;
            self.restore(server).await?;
            return Ok(None);
        };
        if self.prepared.len() + self.preparing.len() >= limits::PREPARED_MAX {
            self.pin(server).await?;
            return Ok(None);
        }
        let (id, told) = oneshot::channel();
        self.preparing.push((prepared, told));
        self.restore(server).await?;
        Ok(Some(id))
    }

    /// A prepared statement is executed.
    pub async fn execute(&mut self, payload: &[u8], server: &mut ServerSide) -> io::Result<Run> {
        self.settle().await;
        if !self.preparing.is_empty() {
            server.idle().await;
        }
        for (prepared, told) in self.preparing.drain(..) {
            // The receiver has nothing if the PREPARE has failed.
            let id = told.await.ok().and_then(|packet| statement_id(packet.head()));
            self.prepared.extend(id.map(|id| (id, prepared)));
        }
        let id = payload.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
        let Some(prepared) = self.prepared.get_mut(&id) else {
            self.restore_warnings(server).await?;
            return Ok(Run::Pass(None));
        };
        let Ok((text, whole)) = prepared.execute(payload) else { return self.pin(server).await };
        // Its constants keep the collation of the time at which it was prepared.
        let is_as_now = prepared.settings == self.settings && prepared.database == self.identity.database;
        let run = match text.filter(|_| is_as_now) {
            Some(text) => self.pack(text.as_bytes(), true, server).await?,
            None => {
                let (sample, database) = (prepared.sample(), prepared.database.clone());
                self.pass(&sample, database.as_deref().and_then(text_of), server).await?
            }
        };
        // The server has not seen the types of executions in a lane.
        Ok(match run {
            Run::Pass(unblock) => {
                self.prepared.entry(id).and_modify(Prepared::passed);
                Run::PassAs(whole, unblock)
            }
            run => run,
        })
    }

    /// A prepared statement is closed, or not packed any more.
    pub fn close(&mut self, payload: &[u8]) {
        self.is_pinned |= !self.preparing.is_empty(); // it could be one whose ID the server has not told yet
        if let Some(id) = payload.first_chunk() {
            self.prepared.remove(&u32::from_le_bytes(*id));
        }
    }

    /// A statement comes, and all its bytes are here.
    pub async fn run(&mut self, text: &[u8], server: &mut ServerSide) -> io::Result<Run> {
        self.pack(text, false, server).await
    }

    async fn pack(&mut self, text: &[u8], is_execution: bool, server: &mut ServerSide) -> io::Result<Run> {
        self.settle().await;
        if self.is_pinned {
            return Ok(Run::Pass(None));
        }
        let Ok(text) = std::str::from_utf8(text) else { return self.pin(server).await };
        let Some(statement) = reader::read(text) else {
            let database = self.database().map(str::to_owned);
            return self.pass(text, database.as_deref(), server).await;
        };
        for _ in 0..TRIES_MAX {
            let autocommit = server.idle().await.is_some_and(is_autocommit);
            let Some(database) = statement.database.or_else(|| self.database()).map(str::to_owned) else {
                return self.pin(server).await;
            };
            let facts = self.pools.facts.of(&database, statement.table).await;
            let Some(facts) = facts.filter(|facts| facts.calls_nothing()) else {
                return self.pin(server).await; // a trigger or a view can do anything to the session
            };
            let keys = facts.keys(table::number(&database, statement.table), &statement);
            self.not_packed = (!autocommit).then_some(NotPacked::Because(RunOutcome::OwnTransaction));
            let (true, Some(keys)) = (autocommit, keys) else { break };
            if !self.is_in_crowd() {
                self.not_packed = Some(NotPacked::Because(RunOutcome::Few));
                break;
            }
            let Some(pool) = self.lane(server).await? else { break };
            if pool.target.first.is_recent() {
                self.not_packed = Some(NotPacked::Because(RunOutcome::GivenBack));
                break;
            }
            let (fate, answer) = oneshot::channel();
            let claimed = claimed(keys, text.len());
            let unit = Statement {
                text: Bytes::copy_from_slice(text.as_bytes()),
                database: database.clone(),
                table: statement.table.to_owned(),
                definition: facts.definition.clone(),
                never_warns: self.identity.fingerprint.starts_with(STRICT) && facts.never_warns(&statement),
                can_be_watched: facts.has_short_rows,
                rows_max: rows_max(&statement),
                removes: matches!(statement.kind, Kind::Delete | Kind::Replace),
                is_execution,
                fate,
                came: Instant::now(),
            };
            if !server.expected.enter_lane() {
                break; // the gateway stops
            }
            let lane = pool.assign(claimed.keys());
            self.pools.enters(self.thread, self.session, lane);
            lane.send(ToLane::Unit(Unit::new(self.session, true, claimed, unit)));
            let fate = wait(answer, server, || lane.send(ToLane::Impatient(self.session))).await?;
            self.pools.leaves(self.thread);
            match self.after(fate) {
                Some(run) => return Ok(run),
                None => self.pools.facts.forget(&database, statement.table),
            }
        }
        self.left = None;
        Ok(Run::Pass(None))
    }

    /// What the session does after this. None if the statement is to be judged again.
    fn after(&mut self, fate: Fate) -> Option<Run> {
        match fate {
            Fate::Answered(packets) => {
                (self.has_packed, self.entered) = (true, None);
                self.left = packets.first().map(|first| Left::of(first));
                Some(Run::Own(packets))
            }
            Fate::Alone(unblock) => {
                (self.left, self.not_packed) = (None, Some(NotPacked::LeftLane));
                Some(Run::Pass(unblock))
            }
            Fate::Again => None,
            Fate::Unknown => {
                (self.left, self.is_pinned, self.entered) = (None, true, None);
                Some(Run::Own(vec![Refusal::UnknownOutcome.payload()]))
            }
        }
    }

    /// Whether the statement, which begins now if it has not yet, is worth a batch.
    fn is_in_crowd(&mut self) -> bool {
        if self.entered.is_some() {
            return true; // a lane has given it back
        }
        let (entered, is_crowd) = self.pools.crowd.enter(Instant::now());
        self.entered = Some(entered);
        is_crowd
    }

    /// The client names another database by COM_INIT_DB.
    pub async fn init_db(&mut self, name: &[u8], server: &mut ServerSide) -> io::Result<Option<FirstPacket>> {
        self.settle().await;
        let is_plain = text_of(name).is_some_and(harmless::is_plain_database);
        if self.is_pinned || !is_plain {
            self.pin(server).await?;
            return Ok(None);
        }
        Ok(Some(self.enter(name, server).await?))
    }

    /// The server is asked to make this the session's database. It can refuse.
    async fn enter(&mut self, database: &[u8], server: &mut ServerSide) -> io::Result<FirstPacket> {
        self.restore(server).await?;
        let (told, answer) = oneshot::channel();
        let rights = self.pools.rights(&self.identity.user);
        self.entering = Some(Entering { database: database.to_vec(), rights, told: answer });
        Ok(told)
    }

    /// Waits until it is known which database is the session's. The command that may change it has been sent.
    async fn settle(&mut self) {
        let Some(Entering { database, rights, told }) = self.entering.take() else { return };
        match told.await {
            Ok(packet) if packet.head().first() == Some(&OK) => {
                self.forget_lane();
                self.rights.enter(rights.as_deref());
                self.identity.database = Some(database);
            }
            Ok(_) => {}                      // an error leaves the session where it is
            Err(_) => self.is_pinned = true, // the connection is lost
        }
    }

    /// The session's database.
    fn database(&self) -> Option<&str> {
        self.identity.database.as_deref().and_then(text_of)
    }

    /// Whether statements in this database on these tables run nothing but themselves.
    async fn calls_nothing(&self, current: Option<&str>, tables: &[(Option<&str>, &str)]) -> bool {
        for (database, table) in tables {
            let Some(database) = database.or(current) else { return false };
            let facts = self.pools.facts.of(database, table).await;
            if !facts.is_some_and(|facts| facts.calls_nothing()) {
                return false;
            }
        }
        true
    }

    async fn fingerprint(&mut self, server: &mut ServerSide) -> io::Result<Option<String>> {
        let fingerprint = server.ask(FINGERPRINT).await?.as_ref().and_then(fingerprint);
        // The call has entered another database and left it. The next OK packet of this kind tells of that.
        server.ask(CLEAR).await?;
        if let Some(rights) = fingerprint.as_ref().and_then(|text| text.get(RIGHTS)) {
            self.pools.note_rights(&self.identity.user, rights);
        }
        Ok(fingerprint)
    }

    /// The lane for this session, if a lane's connection can be like the session's.
    async fn lane(&mut self, server: &mut ServerSide) -> io::Result<Option<Arc<Pool>>> {
        if self.pool.is_none() {
            let fingerprint = self.fingerprint(server).await?;
            if let Some(fingerprint) = fingerprint.filter(|fingerprint| self.rights.are(fingerprint)) {
                self.identity.fingerprint = fingerprint;
                self.pool = self.pools.of(&self.identity, &self.proof).await;
            }
            self.is_pinned = self.pool.is_none();
        }
        Ok(self.pool.clone())
    }

    /// A statement that is not packed, and runs in this database.
    async fn pass(&mut self, text: &str, database: Option<&str>, server: &mut ServerSide) -> io::Result<Run> {
        if self.is_pinned {
            return Ok(Run::Pass(None));
        }
        match harmless::judge(text) {
            Harm::None => {}
            // It sets the diagnostics of the connection itself.
            Harm::Tables(tables) if self.calls_nothing(database, &tables).await => {
                self.left = None;
                return Ok(Run::Pass(None));
            }
            Harm::Setting(name) => {
                self.forget_lane();
                self.settings += 1;
                self.identity.sets.retain(|(other, _)| *other != name);
                self.identity.sets.push((name, text.to_owned()));
            }
            Harm::Database(name) => return Ok(Run::PassAndTell(self.enter(name.as_bytes(), server).await?)),
            Harm::Any if shows_diagnostics(text) => {
                self.is_pinned = true; // it shows what the next packed statement would have to leave
            }
            Harm::Tables(_) | Harm::Any => {
                if self.has_packed && text.to_ascii_lowercase().contains("gtid") {
                    // A transaction of the session itself, whose number is behind those of its packed statements.
                    server.ask("call hotrow.restore(2)").await?;
                }
                return self.pin(server).await;
            }
        }
        self.restore_warnings(server).await?;
        Ok(Run::Pass(None))
    }

    async fn pin(&mut self, server: &mut ServerSide) -> io::Result<Run> {
        self.is_pinned = true;
        self.restore(server).await?;
        Ok(Run::Pass(None))
    }

    /// The statement that follows may see what the last one has left, which ran in a lane.
    async fn restore(&mut self, server: &mut ServerSide) -> io::Result<()> {
        for sql in self.left.take().iter().flat_map(Left::restoring) {
            server.ask(&sql).await?;
        }
        Ok(())
    }

    /// The same for one that sets the number of rows itself, and keeps warnings. Nothing has to be written for it.
    async fn restore_warnings(&mut self, server: &mut ServerSide) -> io::Result<()> {
        if let Some(left @ (Left::Rows(_) | Left::Result)) = &mut self.left {
            *left = Left::Rows(0);
        }
        self.restore(server).await
    }

    fn forget_lane(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.leave(self.session);
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.pools.leaves(self.thread);
        self.forget_lane();
    }
}

/// Waits for a statement in a lane, and keeps the session's connection alive. A statement that waits long for another one which
/// waits for a lock leaves. Otherwise one after the other would wait as long as the server lets them.
async fn wait(
    mut answer: oneshot::Receiver<Fate>,
    server: &mut ServerSide,
    is_impatient: impl Fn(),
) -> io::Result<Fate> {
    let moment = Duration::from_millis(limits::KEEP_ALIVE_MS);
    loop {
        server.keep_alive().await?;
        if let Ok(fate) = timeout(moment, &mut answer).await {
            return Ok(fate.unwrap_or(Fate::Unknown));
        }
        is_impatient();
    }
}

/// What a statement on these rows contends for.
fn claimed(mut keys: Vec<Key>, bytes: usize) -> Claimed {
    keys.sort_unstable();
    keys.dedup();
    let claim = |key: &Key| Claim {
        key: *key,
        statement: 0,
        rows_per_commit: u16::MAX,
        in_key_space: false,
        lockable: false,
        takes_any: false,
    };
    let claims = if keys.len() > 1 { keys.iter().map(claim).collect() } else { Box::default() };
    Claimed {
        key: keys.first().copied(),
        rows_per_commit: u16::MAX,
        statements: 1,
        may_leave: true,
        claims,
        bytes,
        ..Claimed::default()
    }
}

/// The most rows that a statement by keys can change. An INSERT that updates a row counts it twice, and REPLACE can delete others.
fn rows_max(statement: &reader::Statement<'_>) -> u64 {
    match statement.kind {
        Kind::Replace => u64::MAX,
        Kind::Update | Kind::Delete | Kind::Insert => 2 * statement.rows.len() as u64,
    }
}

fn text_of(name: &[u8]) -> Option<&str> {
    std::str::from_utf8(name).ok()
}

/// Whether the next statement is a transaction of its own.
fn is_autocommit(status: u16) -> bool {
    status & (STATUS_AUTOCOMMIT | STATUS_IN_TRANSACTION) == STATUS_AUTOCOMMIT
}

/// The ID in the first packet of the answer to a PREPARE. None in an error.
fn statement_id(packet: &[u8]) -> Option<u32> {
    let id = packet.get(1..5).filter(|_| packet[0] == 0)?;
    id.first_chunk().map(|id| u32::from_le_bytes(*id))
}
