//! The nodes of a distributed database (Citus): lanes that connect to the server which has the rows. A statement runs there
//! under the table's own name, so every node gives the same answer. Whether it can run there is decided by
//! `hotrow_core::distribution`; here the nodes are asked, and connected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotrow_connect::asker::Asker;
use hotrow_connect::lock::Lock;
use hotrow_connect::net::Address;
use hotrow_connect::upstream::{Error, Upstream};
use hotrow_core::admission::ServerSettings;
use hotrow_core::classify::{self, Analysis, Candidate, Decision, Watch};
use hotrow_core::distribution::{Distribution, Node, UnitNode};
use hotrow_core::limits;
use hotrow_core::session::Statement as _;
use hotrow_lane::affinity::LaneId;
use tokio::task::JoinSet;

use super::Pool;
use super::lanes::Lanes;
use crate::config::Config;
use crate::lane::{NodeTarget, Packed, ToLane};
use crate::statements::{NodeRecord, Statement};

/// The nodes with lanes.
#[derive(Debug, Default)]
pub struct Nodes {
    open: Lock<BTreeMap<i32, Arc<OpenNode>>>,
    questions: Lock<BTreeMap<i32, Arc<Questions>>>,
    /// Since when nodes that were asked have not answered.
    silent: Lock<BTreeMap<i32, Instant>>,
}

/// The connection on which a node is asked about statements, one at a time, if it is open.
type Questions = tokio::sync::Mutex<Option<(Node, Asker)>>;

/// A node with lanes. It keeps them when its address or its settings change, because sessions may have units there.
#[derive(Debug)]
pub struct OpenNode {
    address: Lock<Address>,
    pub lanes: Lanes,
}

/// Why statements do not run on a node.
enum Refusal {
    /// It could not be asked.
    Server(Error),
    /// It has not answered in time.
    Silent,
    /// Its answer.
    Unfit(&'static str),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Server(error)
    }
}

impl OpenNode {
    /// Puts another configuration of the pool in force.
    pub fn set_config(&self, config: &Config) {
        self.lanes.context.set_config(config.clone().at(self.address.lock().clone()));
    }

    /// Whether it has this address, and its settings are as expected.
    fn is_ready_at(&self, address: &Address) -> bool {
        *self.address.lock() == *address && self.lanes.context.packs()
    }

    /// Its lanes connect anew, to this address.
    fn renew(&self, address: Address, config: Config, server: ServerSettings) {
        *self.address.lock() = address;
        let context = &self.lanes.context;
        context.set_server(server);
        context.set_config(config);
        drop(self.lanes.ask(&ToLane::Renew));
    }
}

fn address(node: &Node) -> Address {
    Address::Tcp(node.host.clone(), node.port)
}

impl Nodes {
    /// All nodes that have lanes.
    pub fn all(&self) -> Vec<Arc<OpenNode>> {
        self.open.lock().values().cloned().collect()
    }

    /// Nodes are asked on new connections from now on.
    pub fn forget_questions(&self) {
        self.questions.lock().clear();
    }

    /// The node with this number, if it has lanes.
    pub fn get(&self, id: i32) -> Option<Arc<OpenNode>> {
        self.open.lock().get(&id).cloned()
    }

    /// Whether the node has not answered a short while ago, so that no client should wait for it now.
    fn is_silent(&self, id: i32) -> bool {
        let silence = Duration::from_millis(limits::NODE_SILENCE_MS);
        self.silent.lock().get(&id).is_some_and(|since| since.elapsed() < silence)
    }

    /// Notes whether the node has answered.
    fn note_answer(&self, id: i32, has_answered: bool) {
        let mut silent = self.silent.lock();
        if has_answered {
            silent.remove(&id);
        } else {
            silent.insert(id, Instant::now());
        }
    }
}

impl Pool {
    /// The lane for a unit. None if no lane can run it, or not yet.
    pub fn assign(self: &Arc<Self>, unit: &Packed, only: Option<LaneId>) -> Option<LaneId> {
        let node = match unit.node {
            UnitNode::Anywhere | UnitNode::Own => None,
            UnitNode::Node(id) => Some(id),
            UnitNode::Nowhere => return None,
        };
        if only.is_some_and(|lane| lane.node != node) {
            return None;
        }
        let only = only.map(|lane| lane.index);
        let index = match node {
            None => self.context.assign(unit, only),
            Some(id) => self.ready_node(id, unit)?.lanes.context.assign(unit, only),
        };
        index.map(|index| LaneId { node, replica: None, index })
    }

    /// The node, if each statement of the unit is known to run there like here. If that is not known, the node is asked in
    /// time for the next run.
    fn ready_node(self: &Arc<Self>, id: i32, unit: &Packed) -> Option<Arc<OpenNode>> {
        // The OIDs of tables differ from node to node, and such a description contains them.
        if unit.describes_statement() {
            return None;
        }
        let epoch = self.catalog_epoch();
        let mut is_ready = true;
        for run in unit.runs() {
            let known = run.statement.at_node(id, epoch);
            if known.is_ageing {
                self.ask_early(&run.statement, move |pool, statement| async move {
                    pool.ask_node(id, &statement, epoch).await;
                });
            }
            is_ready &= known.runs_there && !run.statement.is_superseded();
        }
        self.nodes.get(id).filter(|node| is_ready && node.lanes.context.packs())
    }

    /// Asks the nodes where a statement has run about it once more, at the same time.
    pub(super) async fn ask_nodes_again(self: &Arc<Self>, statement: &Arc<Statement>, epoch: u64) {
        let mut asked = JoinSet::new();
        for id in statement.nodes() {
            let (pool, statement) = (self.clone(), statement.clone());
            asked.spawn(async move { pool.ask_node(id, &statement, epoch).await });
        }
        while asked.join_next().await.is_some() {}
    }

    /// Asks a node about a statement, and notes the answer.
    async fn ask_node(self: &Arc<Self>, id: i32, statement: &Arc<Statement>, epoch: u64) {
        let Analysis::Candidate(candidate) = &statement.analysis else { return };
        // A pause waits for the answer, and closes the connection.
        let Some(_database_use) = self.database_state().try_enter() else { return };
        let age_max = self.config().catalog_age;
        let (watch, ask_again_in) = match self.watch_in_time(id, statement, candidate).await {
            Ok(watch) => (Some(watch.map(Arc::new)), age_max / 2),
            Err(Refusal::Server(error)) => {
                tracing::debug!(node = id, statement = statement.id, %error, "a node could not be asked");
                (None, Duration::from_millis(limits::RECONNECT_MAX_MS))
            }
            Err(Refusal::Silent) => {
                tracing::debug!(node = id, statement = statement.id, "a node does not answer");
                (None, Duration::from_millis(limits::RECONNECT_MAX_MS))
            }
            Err(Refusal::Unfit(why)) => {
                tracing::info!(
                    node = id,
                    statement = statement.id,
                    why,
                    "a statement is not packed on a node"
                );
                (None, age_max / 2)
            }
        };
        let now = Instant::now();
        statement.note_node(NodeRecord {
            node: id,
            runs_there: watch.is_some(),
            watch: watch.flatten(),
            epoch,
            ask_again_at: now + ask_again_in,
            valid: now + age_max,
        });
    }

    /// The answer of [`Pool::watch_at`], unless the node does not answer.
    async fn watch_in_time(
        self: &Arc<Self>,
        id: i32,
        statement: &Arc<Statement>,
        candidate: &Candidate,
    ) -> Result<Option<Watch>, Refusal> {
        if self.nodes.is_silent(id) {
            return Err(Refusal::Silent);
        }
        let answer = self.watch_at(id, statement, candidate);
        let answer = tokio::time::timeout(Duration::from_millis(limits::NODE_ANSWER_MS), answer).await;
        self.nodes.note_answer(id, answer.is_ok());
        if answer.is_err() {
            tracing::info!(node = id, "a node does not answer: its statements run through the coordinator");
        }
        answer.unwrap_or(Err(Refusal::Silent))
    }

    /// The table that the statement relies on at a node, if it can run there.
    async fn watch_at(
        self: &Arc<Self>,
        id: i32,
        statement: &Arc<Statement>,
        candidate: &Candidate,
    ) -> Result<Option<Watch>, Refusal> {
        let unfit = |why| Err(Refusal::Unfit(why));
        let Some(packing) = statement.packing() else { return unfit("it is no longer packed") };
        let Some(here) = &packing.distribution else { return unfit("its table is no longer distributed") };
        let Some(node) = here.node(id) else { return unfit("the node is not active") };
        let config = Config::clone(&self.config()).at(address(node));
        let questions = self.nodes.questions.lock().entry(id).or_default().clone();
        let mut questions = questions.lock().await;
        let mut asker = match questions.take() {
            Some((of, asker)) if of == *node => asker,
            _ => self.new_asker(&config).await?,
        };
        let facts = asker.facts(candidate).await?;
        self.open_node(node, config, &mut asker.upstream).await?;
        *questions = Some((node.clone(), asker));
        drop(questions);
        let types = statement.known_types(candidate);
        let Decision::Packed(there) = classify::decide(candidate, &facts, &types) else {
            return unfit("the node has other facts about its table");
        };
        let is_same = |there: &Arc<Distribution>| there.local_node == id && there.is_of_same_table(here);
        if !there.distribution.as_ref().is_some_and(is_same) {
            return unfit("the table's name means another table there");
        }
        if there.distribution.as_ref().is_some_and(|there| there.privileges != here.privileges) {
            return unfit("the role has other privileges on the table there");
        }
        let columns = |packing: &classify::Packing| packing.key.as_ref().map(|key| key.columns.clone());
        if there.kind != packing.kind || columns(&there) != columns(&packing) {
            return unfit("the node has other indexes");
        }
        // A call of the hotrow schema relies on no table of its own.
        Ok(there.watch.map(|watch| *watch))
    }

    /// A connection for questions to the server of this configuration.
    pub(super) async fn new_asker(&self, config: &Config) -> Result<Asker, Error> {
        let upstream = self.connect_as_own(config, true).await?;
        Asker::new(upstream, &config.upstream.user, config.citus_lanes).await
    }

    /// A connection of the gateway's own, with the settings of the pool's clients.
    pub(super) async fn connect_as_own(&self, config: &Config, primary: bool) -> Result<Upstream, Error> {
        let mut parameters = self.context.parameters.clone();
        parameters.push(("application_name".to_owned(), "hotrow".to_owned()));
        let mut upstream =
            Upstream::connect(&config.upstream, &parameters, &self.context.login, primary).await?;
        let settings = self.identity.settings();
        if !settings.is_empty() {
            upstream.set_settings(settings, "hotrow").await?;
        }
        Ok(upstream)
    }

    /// Makes sure that the node has lanes. They are started only if its settings are those of the pool's server.
    async fn open_node(&self, node: &Node, config: Config, there: &mut Upstream) -> Result<(), Refusal> {
        let (known, address) = (self.nodes.get(node.id), address(node));
        if known.as_ref().is_some_and(|open| open.is_ready_at(&address)) {
            return Ok(());
        }
        let text = include_str!("../../sql/node_settings.sql");
        let mut here = self.connect_as_own(&self.config().clone(), true).await?;
        let same = here.query_catalog(text, &[]).await? == there.query_catalog(text, &[]).await?;
        let server = there.server_settings().await?;
        if !same || self.context.server().contradicts(&server.parameters) {
            return Err(Refusal::Unfit(
                "its version or its settings differ from the pool's server: make them equal on all nodes",
            ));
        }
        if let Some(open) = known {
            open.renew(address, config, server);
            tracing::info!(
                node = node.id,
                clients = self.identity.describe(),
                "lanes to a node connect again"
            );
            return Ok(());
        }
        let lanes = Lanes::start(Arc::new(self.context.to(NodeTarget(node.id), config, server)));
        let mut open = self.nodes.open.lock();
        if open.contains_key(&node.id) {
            lanes.end(); // another statement has opened the node meanwhile
            return Ok(());
        }
        if open.len() >= limits::NODES_MAX {
            lanes.end();
            return Err(Refusal::Unfit("the pool has lanes to as many nodes as it can have"));
        }
        let opened = Arc::new(OpenNode { address: Lock::new(address), lanes });
        open.insert(node.id, opened.clone());
        drop(open);
        if self.database_state().is_paused() {
            // The pause may have begun before it could find these lanes.
            drop(opened.lanes.ask(&ToLane::Pause));
        }
        tracing::info!(
            node = node.id,
            server = format!("{}:{}", node.host, node.port),
            clients = self.identity.describe(),
            "lanes to a node opened"
        );
        Ok(())
    }
}
