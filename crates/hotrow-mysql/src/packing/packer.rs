//! What a session knows about itself for packing. A statement is packed only if the session's connection has the same settings as
//! the lane's, and nothing else that a statement could see. Whatever may have left something there ends packing for the session.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hotrow_gateway::lanes::{ToLane, Unblock};
use hotrow_lane::lane::{Claimed, LaneKind, Unit};
use hotrow_mysql_wire::capabilities::{STATUS_AUTOCOMMIT, STATUS_IN_TRANSACTION};
use hotrow_mysql_wire::command::Command;
use hotrow_mysql_wire::message::Ok as OkPacket;
use hotrow_mysql_wire::native::Hash;
use hotrow_mysql_wire::scan::Scanned;
use tokio::sync::oneshot;

use crate::lane::{FINGERPRINT, Fate, Statement};
use crate::limits;
use crate::log_in::LoggedIn;
use crate::packing::harmless::{self, Harm};
use crate::packing::pools::{Identity, Pool, Pools};
use crate::packing::prepared::Prepared;
use crate::packing::reader;
use crate::packing::table;
use crate::refusal::Refusal;
use crate::server_side::ServerSide;

/// Lanes can give a statement back for other facts about its table. After this number, it is passed through.
const TRIES_MAX: usize = 3;

/// What the session does with a statement.
#[derive(Debug)]
pub enum Run {
    /// The gateway answers with this payload.
    Own(Vec<u8>),
    /// The session runs it on its own connection. Units of its row may wait for the end of that.
    Pass(Option<Unblock<Statement>>),
    /// The same, with this payload instead of its own.
    PassAs(Vec<u8>, Option<Unblock<Statement>>),
}

/// Where the first packet of the answer to a PREPARE goes, which has the statement's ID.
pub type StatementId = oneshot::Sender<Scanned>;

/// A session's part in packing.
pub struct Packer {
    pools: Arc<Pools>,
    identity: Identity,
    proof: (Hash, Vec<u8>),
    session: u64,
    pool: Option<Arc<Pool>>,
    /// It packs no more.
    is_pinned: bool,
    /// Its settings are the lane's.
    is_verified: bool,
    /// The rows of the last statement, if that was packed. The session's own connection does not know of it.
    packed_rows: Option<u64>,
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
        };
        let session = pools.next_session();
        let proof = logged_in.proof.clone()?;
        Some(Packer {
            pools,
            identity,
            proof,
            session,
            pool: None,
            is_pinned: false,
            is_verified: false,
            packed_rows: None,
            prepared: HashMap::new(),
            preparing: Vec::new(),
        })
    }

    /// A command comes whose bytes are not all here, or that has no text.
    pub fn command(&mut self, command: Command) {
        self.is_pinned |= !matches!(
            command,
            Command::Ping | Command::Quit | Command::Statistics | Command::StmtReset | Command::StmtFetch
        );
    }

    /// A statement is prepared. Returns where its ID goes, if the statement may be packed.
    pub async fn prepare(&mut self, text: &[u8], server: &mut ServerSide) -> io::Result<Option<StatementId>> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let prepared = Prepared::of(text).filter(|_| !self.is_pinned);
        let Some(prepared) = prepared else {
            // Its executions can leave what it leaves.
            let is_harmless = harmless::judge(&text.replace('?', "1")) == Harm::None;
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
            self.restore(server).await?;
            return Ok(Run::Pass(None));
        };
        let Ok((text, whole)) = prepared.execute(payload) else { return self.pin(server).await };
        // The server has not seen the types of executions in a lane.
        Ok(match text {
            Some(text) => match self.run(text.as_bytes(), server).await? {
                Run::Pass(unblock) => Run::PassAs(whole, unblock),
                run => run,
            },
            None => {
                self.pin(server).await?;
                Run::PassAs(whole, None)
            }
        })
    }

    /// A prepared statement is closed.
    pub fn close(&mut self, payload: &[u8]) {
        if let Some(id) = payload.first_chunk() {
            self.prepared.remove(&u32::from_le_bytes(*id));
        }
    }

    /// A statement comes, and all its bytes are here.
    pub async fn run(&mut self, text: &[u8], server: &mut ServerSide) -> io::Result<Run> {
        if self.is_pinned {
            return Ok(Run::Pass(None));
        }
        let Ok(text) = std::str::from_utf8(text) else { return self.pin(server).await };
        let Some(statement) = reader::read(text) else { return self.pass(text, server).await };
        for _ in 0..TRIES_MAX {
            let status = server.idle().await;
            let autocommit = status.is_some_and(|status| {
                status & (STATUS_AUTOCOMMIT | STATUS_IN_TRANSACTION) == STATUS_AUTOCOMMIT
            });
            let of_session =
                || self.identity.database.as_deref().and_then(|name| std::str::from_utf8(name).ok());
            let Some(database) = statement.database.or_else(of_session).map(str::to_owned) else {
                return self.pin(server).await;
            };
            let facts = self.pools.facts.of(&database, statement.table).await;
            let Some(facts) = facts.filter(|facts| facts.has_no_triggers()) else {
                return self.pin(server).await; // a trigger can do anything to the session
            };
            let key = facts.key(table::number(&database, statement.table), &statement);
            let (true, Some(key)) = (autocommit, key) else { break };
            let Some(pool) = self.lane(server).await? else { break };
            let (fate, answer) = oneshot::channel();
            let claimed = Claimed {
                key: Some(key),
                rows_per_commit: u16::MAX,
                statements: 1,
                bytes: text.len(),
                ..Claimed::default()
            };
            let unit = Statement {
                text: Bytes::copy_from_slice(text.as_bytes()),
                database: database.clone(),
                table: statement.table.to_owned(),
                definition: facts.definition.clone(),
                fate,
                came: Instant::now(),
            };
            if !server.expected.enter_lane() {
                break; // the gateway stops
            }
            pool.shared.assign(LaneKind::Write, claimed.keys(), None);
            pool.inbox.send(ToLane::Unit(Unit::new(self.session, true, claimed, unit)));
            let fate = answer.await.unwrap_or(Fate::Unknown);
            match fate {
                Fate::Answered(payload) => {
                    self.packed_rows = OkPacket::read(&payload).ok().map(|ok| ok.affected);
                    return Ok(Run::Own(payload));
                }
                Fate::Alone(unblock) => {
                    self.packed_rows = None;
                    return Ok(Run::Pass(unblock));
                }
                Fate::Again => self.pools.facts.forget(&database, statement.table),
                Fate::Unknown => return Ok(Run::Own(Refusal::UnknownOutcome.payload())),
            }
        }
        self.packed_rows = None;
        Ok(Run::Pass(None))
    }

    /// The lane for this session, if its settings are the lane's.
    async fn lane(&mut self, server: &mut ServerSide) -> io::Result<Option<Arc<Pool>>> {
        if self.pool.is_none() {
            self.pool = self.pools.of(&self.identity, &self.proof).await;
        }
        let Some(pool) = self.pool.clone() else {
            self.is_pinned = true;
            return Ok(None);
        };
        if !self.is_verified {
            let fingerprint = server.ask(FINGERPRINT).await?;
            self.is_verified = fingerprint.as_ref() == Some(&pool.fingerprint);
            self.is_pinned = !self.is_verified;
        }
        Ok(Some(pool).filter(|_| self.is_verified))
    }

    /// A statement that is not packed.
    async fn pass(&mut self, text: &str, server: &mut ServerSide) -> io::Result<Run> {
        match harmless::judge(text) {
            Harm::None => {}
            Harm::Setting if self.identity.sets.len() < limits::SETS_MAX => {
                self.forget_lane();
                self.identity.sets.push(text.to_owned());
            }
            Harm::Setting | Harm::Any => return self.pin(server).await,
        }
        self.restore(server).await?;
        Ok(Run::Pass(None))
    }

    async fn pin(&mut self, server: &mut ServerSide) -> io::Result<Run> {
        self.is_pinned = true;
        self.restore(server).await?;
        Ok(Run::Pass(None))
    }

    /// The statement that follows may see what the last one has left, which ran in a lane.
    async fn restore(&mut self, server: &mut ServerSide) -> io::Result<()> {
        if let Some(rows) = self.packed_rows.take() {
            server.ask(&format!("call hotrow.restore({rows})")).await?;
        }
        Ok(())
    }

    fn forget_lane(&mut self) {
        self.is_verified = false;
        if let Some(pool) = self.pool.take() {
            pool.inbox.send(ToLane::Gone(self.session));
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.forget_lane();
    }
}

/// The ID in the first packet of the answer to a PREPARE. None in an error.
fn statement_id(packet: &[u8]) -> Option<u32> {
    let id = packet.get(1..5).filter(|_| packet[0] == 0)?;
    id.first_chunk().map(|id| u32::from_le_bytes(*id))
}
