//! All clients that the server can't tell apart: one user, one database, one set of start-up settings. They share
//! lanes, the connections they hold for a while, and what is known of their statements.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use hotrow_core::affinity::Affinity;
use hotrow_core::classify::{self, Analysis, Candidate, Decision, Facts, MergeRule};
use hotrow_core::key::Key;
use hotrow_core::lane::{Kind, Unit};

use crate::config::Config;
use crate::held::{self, Held, HeldConnections};
use crate::lane::{self, Inbox, Message};
use crate::statements::{Known, Statement, Statements, Verdict};
use crate::unit::Packed;
use crate::upstream;

/// What makes two clients the same to the server: the start-up parameters but for the application's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Vec<(String, String)>);

impl Identity {
    /// From a client's start-up parameters; the order in which they came doesn't matter.
    pub fn new(parameters: &[(String, String)]) -> Self {
        let mut parameters: Vec<_> = parameters
            .iter()
            .filter(|(name, _)| name != "application_name" && !name.starts_with("_pq_."))
            .cloned()
            .collect();
        if !parameters.iter().any(|(name, _)| name == "database")
            && let Some((_, user)) = parameters.iter().find(|(name, _)| name == "user").cloned()
        {
            parameters.push(("database".to_owned(), user));
        }
        parameters.sort();
        Identity(parameters)
    }

    /// The same without `client_encoding`, where that asks for UTF-8: half of the drivers say so, the others get it anyway
    /// from a server whose database has that encoding.
    pub fn without_utf8(&self) -> Option<Self> {
        let (_, value) = self.0.iter().find(|(name, _)| name == "client_encoding")?;
        let letters =
            value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let others = || self.0.iter().filter(|(name, _)| name != "client_encoding").cloned().collect();
        matches!(letters.as_str(), "utf8" | "unicode").then(|| Identity(others()))
    }

    /// The start-up parameters for the server.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.0
    }

    /// For people: who, and where.
    pub fn describe(&self) -> String {
        let get =
            |wanted| self.0.iter().find(|(name, _)| name == wanted).map_or("?", |(_, value)| value.as_str());
        format!("{}@{}", get("user"), get("database"))
    }
}

/// One of them.
#[derive(Debug)]
pub struct Pool {
    /// Its number.
    pub id: u64,
    /// Who its clients are.
    pub identity: Identity,
    /// What the server said of itself when the first client logged in.
    pub parameters: Vec<(String, String)>,
    /// What is known of statements.
    pub statements: Statements,
    /// The gateway's configuration.
    pub config: Arc<Config>,
    held: Arc<HeldConnections>,
    /// Counts what may have changed the catalogue.
    epoch: AtomicU64,
    /// Why nothing can be packed for these clients, if nothing can.
    unpackable: Option<String>,
    writes: Lanes,
    reads: Lanes,
}

#[derive(Debug)]
struct Lanes {
    affinity: Mutex<Affinity>,
    inboxes: Vec<Arc<Inbox>>,
}

impl Lanes {
    fn new(count: usize) -> Self {
        Lanes {
            affinity: Mutex::new(Affinity::new(count)),
            inboxes: (0..count).map(|_| Arc::new(Inbox::default())).collect(),
        }
    }

    fn affinity(&self) -> std::sync::MutexGuard<'_, Affinity> {
        self.affinity.lock().expect("nothing panics while it holds the affinity")
    }
}

static IDS: AtomicU64 = AtomicU64::new(1);

impl Pool {
    /// Logs in once, to see that it works and what the server says of itself, and starts the lanes' tasks.
    pub async fn open(
        config: Arc<Config>,
        held: Arc<HeldConnections>,
        identity: Identity,
    ) -> Result<Arc<Self>, held::Error> {
        let id = IDS.fetch_add(1, Relaxed);
        let mut connection = held.take(&config, id, identity.parameters(), "hotrow").await?;
        let parameters = connection.upstream.parameters.clone();
        let settings = connection.upstream.query(include_str!("../sql/isolation.sql"), &[]).await?;
        let unpackable = unpackable(&config, settings.first());
        held.give_back(connection);
        tracing::info!(pool = id, clients = identity.describe(), unpackable, "pool opened");
        let lanes = config.lanes;
        let pool = Arc::new(Pool {
            id,
            identity,
            parameters,
            statements: Statements::default(),
            config,
            held,
            epoch: AtomicU64::new(0),
            unpackable,
            writes: Lanes::new(lanes),
            reads: Lanes::new(lanes),
        });
        for kind in [Kind::Write, Kind::Read] {
            for (index, inbox) in pool.lanes(kind).inboxes.iter().enumerate() {
                tokio::spawn(lane::run(pool.clone(), kind, index, inbox.clone()));
            }
        }
        Ok(pool)
    }

    /// Whether these clients speak UTF-8, as far as the server has said.
    pub fn speaks_utf8(&self) -> bool {
        self.parameters.iter().any(|(name, value)| name == "client_encoding" && value == "UTF8")
    }

    /// Whether anything of these clients can be packed.
    pub fn packs(&self) -> bool {
        self.unpackable.is_none()
    }

    /// Why not, if not.
    pub fn unpackable(&self) -> Option<&str> {
        self.unpackable.as_deref()
    }

    fn lanes(&self, kind: Kind) -> &Lanes {
        match kind {
            Kind::Write => &self.writes,
            Kind::Read => &self.reads,
        }
    }

    /// The lane for a unit of this key, other than which a session with units under way in lane `only` may not use.
    pub fn assign(&self, kind: Kind, key: Option<Key>, only: Option<usize>) -> Option<usize> {
        self.lanes(kind).affinity().assign(key, only)
    }

    /// Units have left their lane.
    pub fn release(&self, kind: Kind, lane: usize, keys: impl Iterator<Item = Option<Key>>) {
        let mut affinity = self.lanes(kind).affinity();
        keys.for_each(|key| affinity.release(lane, key));
    }

    /// Hands a unit to its lane.
    pub fn submit(&self, kind: Kind, lane: usize, session: u64, first: bool, packed: Packed) {
        let unit = Unit {
            session,
            first,
            key: packed.key,
            rows_per_commit: packed.packing.rows_per_commit,
            merge: packed.merge,
            bytes: packed.frames().len() + packed.raw().len(),
            losses: 0,
            reruns: 0,
            payload: packed,
        };
        self.send(kind, lane, Message::Unit(unit));
    }

    /// Tells a lane something.
    pub fn send(&self, kind: Kind, lane: usize, message: Message) {
        self.lanes(kind).inboxes[lane].send(message);
    }

    /// Tells every lane something.
    pub fn send_all(&self, message: impl Fn() -> Message) {
        for inbox in self.writes.inboxes.iter().chain(&self.reads.inboxes) {
            inbox.send(message());
        }
    }

    /// A connection for a session to hold.
    pub async fn take(&self, application_name: &str) -> Result<Held, held::Error> {
        self.held.take(&self.config, self.id, self.identity.parameters(), application_name).await
    }

    /// Gives it back, clean.
    pub fn give_back(&self, held: Held) {
        self.held.give_back(held);
    }

    /// Something may have changed the catalogue: nothing is believed that was asked before.
    pub fn catalogue_changed(&self) {
        self.epoch.fetch_add(1, Relaxed);
    }

    /// What is done with a statement. Asks the catalogue if need be; clients of one statement ask once.
    pub async fn verdict(self: &Arc<Self>, statement: &Arc<Statement>) -> Result<Verdict, held::Error> {
        let candidate = match &statement.analysis {
            Analysis::Candidate(candidate) => candidate,
            _ => return Ok(Verdict::Pass),
        };
        let epoch = self.epoch.load(Relaxed);
        match statement.known(epoch, self.config.catalogue_age) {
            Known::Fresh(verdict) => Ok(verdict),
            Known::Old(verdict) => {
                statement.renew();
                let (pool, statement) = (self.clone(), statement.clone());
                tokio::spawn(async move {
                    if let Analysis::Candidate(candidate) = &statement.analysis
                        && let Err(error) = pool.ask(&statement, candidate, epoch).await
                    {
                        tracing::debug!(%error, "the catalogue could not be asked again");
                    }
                });
                Ok(verdict)
            }
            Known::No => {
                let _one_at_a_time = statement.deciding.lock().await;
                match statement.known(epoch, self.config.catalogue_age) {
                    Known::Fresh(verdict) | Known::Old(verdict) => Ok(verdict),
                    Known::No => self.ask(statement, candidate, epoch).await,
                }
            }
        }
    }

    async fn ask(
        &self,
        statement: &Statement,
        candidate: &Candidate,
        epoch: u64,
    ) -> Result<Verdict, held::Error> {
        let verdict = match self.facts(candidate).await {
            Ok(facts) => match classify::decide(candidate, &facts, &statement.declared_types()) {
                Decision::Packed(packing) => Verdict::Packed(Arc::new(packing)),
                Decision::Pass { reason, .. } => {
                    tracing::debug!(statement = statement.id, ?reason, "decided: passed through");
                    Verdict::Pass
                }
            },
            // A role that may not look there (a schema without USAGE) gets the server's own words for its statement.
            Err(held::Error::Upstream(upstream::Error::Refused { code, message, .. })) => {
                tracing::debug!(code, message, "the catalogue could not be asked");
                Verdict::Pass
            }
            Err(error) => return Err(error),
        };
        statement.decide(verdict.clone(), epoch);
        Ok(verdict)
    }

    /// What the catalogue says about a candidate.
    pub async fn facts(&self, candidate: &Candidate) -> Result<Facts, held::Error> {
        let mut held = self.take("hotrow").await?;
        let table = match &candidate.table {
            Some(name) => {
                let rows = held
                    .upstream
                    .query(include_str!("../sql/table_facts.sql"), &[&name.to_regclass()])
                    .await?;
                from_json(rows)?
            }
            None => None,
        };
        let names = classify::names_to_look_up(candidate, table.as_ref());
        let functions = if names.is_empty() {
            Vec::new()
        } else {
            let names = array(&names);
            let rows = held.upstream.query(include_str!("../sql/function_facts.sql"), &[&names]).await?;
            from_json(rows)?.unwrap_or_default()
        };
        let rules = match &candidate.call {
            Some(call) => merge_rules(&mut held, &call.function.name).await?,
            None => Vec::new(),
        };
        self.give_back(held);
        Ok(Facts { table, functions, rules })
    }
}

/// The merge rules for functions of this name, where there are any.
async fn merge_rules(held: &mut Held, function: &String) -> Result<Vec<MergeRule>, upstream::Error> {
    let can_ask = held.upstream.query(include_str!("../sql/merge_rules_exist.sql"), &[]).await?;
    if can_ask.first().and_then(|row| row.first()?.as_deref()) != Some("t") {
        return Ok(Vec::new());
    }
    let names = array(std::slice::from_ref(function));
    let rows = held.upstream.query(include_str!("../sql/merge_rules.sql"), &[&names]).await?;
    Ok(from_json(rows)?.unwrap_or_default())
}

fn from_json<T: serde::de::DeserializeOwned>(
    rows: Vec<Vec<Option<String>>>,
) -> Result<Option<T>, upstream::Error> {
    match rows.first().and_then(|row| row.first()) {
        Some(Some(json)) => serde_json::from_str(json)
            .map(Some)
            .map_err(|error| upstream::Error::Protocol(format!("facts about the catalogue: {error}"))),
        _ => Ok(None),
    }
}

/// A text array in text format.
fn array(names: &[String]) -> String {
    let quoted = names.iter().map(|name| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

fn unpackable(config: &Config, settings: Option<&Vec<Option<String>>>) -> Option<String> {
    if !config.pack {
        return Some("packing is switched off by the configuration".to_owned());
    }
    let setting = |index: usize| settings.and_then(|row| row.get(index)?.as_deref()).unwrap_or("");
    if setting(0) != "read committed" {
        return Some(format!(
            "default_transaction_isolation is {}, and only read committed can be packed",
            setting(0)
        ));
    }
    if setting(1) != "on" {
        return Some("standard_conforming_strings is off".to_owned());
    }
    if !matches!(setting(2), "UTF8" | "SQL_ASCII") {
        return Some(format!("client_encoding is {}, and only UTF8 and SQL_ASCII can be packed", setting(2)));
    }
    None
}
