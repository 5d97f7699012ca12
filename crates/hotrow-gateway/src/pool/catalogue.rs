//! A pool's questions to the catalogue: facts about a statement's table and names, the state that it leaves behind, and
//! the server's description of it. `hotrow-core` decides what follows from the answers.

use std::sync::Arc;

use hotrow_core::classify::{self, Candidate, Facts, FunctionFact, MergeRule, TableFacts, View};
use hotrow_core::distribution::Distribution;
use hotrow_core::limits;
use hotrow_core::session::{Proof, Statement as _};

use crate::config::Config;
use crate::pool::Pool;
use crate::server::held;
use crate::server::pack::{self, DISTRIBUTION_OF, MERGE_RULES};
use crate::server::upstream::{self, Upstream};
use crate::statements::Statement;

impl Pool {
    /// Asks the server to describe a statement, once.
    pub(crate) async fn describe(&self, statement: &Statement) -> Result<(), held::Error> {
        if statement.description.get().is_none() {
            let mut held = self.take_own().await?;
            let description = held.upstream.describe(&statement.text, &statement.types).await?;
            self.give_back(held);
            // another task may have been faster
            description.map(|description| statement.description.set(description).ok());
        }
        Ok(())
    }

    /// The types of a statement's parameters, as far as the decision about it needs them.
    pub async fn known_types(
        &self,
        statement: &Statement,
        candidate: &Candidate,
    ) -> Result<Vec<u32>, held::Error> {
        if candidate.needs_description() {
            self.describe(statement).await?;
        }
        Ok(statement.known_types(candidate))
    }

    /// The state that a statement which is passed through is known to leave behind. If this is unknown, the catalogue
    /// is asked in time for the next run.
    pub fn proof(self: &Arc<Self>, statement: &Arc<Statement>) -> Proof {
        if statement.is_plain {
            return Proof { is_clean: true, moves_sequence: false };
        }
        if let Some(packing) = statement.packing() {
            return Proof { is_clean: true, moves_sequence: packing.touches_sequence };
        }
        let epoch = self.database_state().catalogue_epoch();
        let (proof, ask) = statement.proof(epoch, self.config().catalogue_age);
        if ask {
            self.ask_early(statement, |pool, statement| async move {
                let proof = pool.prove(&statement).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, "the catalogue could not be queried about a statement");
                    Proof::NONE
                });
                statement.prove(proof, epoch);
            });
        }
        proof
    }

    async fn prove(&self, statement: &Statement) -> Result<Proof, held::Error> {
        let Some(reach) = str::from_utf8(&statement.text).ok().and_then(classify::reach) else {
            return Ok(Proof::NONE);
        };
        if reach.names.is_empty() {
            return Ok(Proof { is_clean: true, moves_sequence: false });
        }
        let mut held = self.take_own().await?;
        let rows = held
            .upstream
            .query_catalogue(include_str!("../../sql/reached_tables.sql"), &[&array(&reach.names)])
            .await?;
        let names: Option<Vec<String>> = from_json(rows)?;
        let Some(names) = names.filter(|names| names.len() <= limits::REACHED_TABLES_MAX) else {
            self.give_back(held);
            return Ok(Proof::NONE);
        };
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            tables.extend(table_facts(&mut held.upstream, &name).await?);
        }
        let mut all = reach.names.clone();
        all.extend(reach.names_in_tables(&tables));
        let functions = function_facts(&mut held.upstream, all).await?;
        self.give_back(held);
        let is_clean = reach.is_clean(&tables, &functions);
        Ok(Proof { is_clean, moves_sequence: reach.moves_sequence(&tables) })
    }

    /// The catalogue's facts about a candidate.
    pub async fn facts(&self, candidate: &Candidate) -> Result<Facts, held::Error> {
        let mut held = self.take_own().await?;
        let config = self.config().clone();
        let facts = facts(&mut held.upstream, candidate, &config).await?;
        self.give_back(held);
        Ok(facts)
    }
}

/// The catalogue's facts about a candidate, and about each statement in its WITH, on the server of this connection.
pub async fn facts(
    upstream: &mut Upstream,
    candidate: &Candidate,
    config: &Config,
) -> Result<Facts, upstream::Error> {
    let mut facts = facts_of_part(upstream, candidate, config).await?;
    for common in &candidate.with {
        facts.with.push(facts_of_part(upstream, &common.statement, config).await?);
    }
    Ok(facts)
}

async fn facts_of_part(
    upstream: &mut Upstream,
    candidate: &Candidate,
    config: &Config,
) -> Result<Facts, upstream::Error> {
    let mut table = match &candidate.table {
        Some(name) => table_facts(upstream, &name.to_regclass()).await?,
        None => None,
    };
    if let Some(distribution) = table.as_mut().and_then(|table| table.distribution.as_mut()) {
        Arc::make_mut(distribution).has_lanes = config.citus_lanes;
    }
    let names = classify::names_to_look_up(candidate, table.as_ref());
    let functions = function_facts(upstream, names).await?;
    let rules = match &candidate.call {
        Some(call) => merge_rules(upstream, config, &call.function.name).await?,
        None => Vec::new(),
    };
    let cached_sequences = classify::moves_any_sequence(candidate, table.as_ref()) && {
        let rows = upstream.query_catalogue(include_str!("../../sql/cached_sequences.sql"), &[]).await?;
        rows.first().and_then(|row| row.first()?.as_deref()) != Some("f")
    };
    Ok(Facts { table, functions, rules, cached_sequences, with: Vec::new() })
}

/// Objects outside `pg_catalog` with these names, and with names in the sources of users' functions; also users' casts,
/// which have no name in the text.
async fn function_facts(
    upstream: &mut Upstream,
    names: Vec<String>,
) -> Result<Vec<FunctionFact>, upstream::Error> {
    let text = include_str!("../../sql/function_facts.sql");
    let mut facts: Vec<FunctionFact> =
        from_json(upstream.query_catalogue(text, &[&array(&names)]).await?)?.unwrap_or_default();
    let mut more = classify::names_in_sources(&facts);
    more.retain(|name| !names.contains(name));
    if !more.is_empty() {
        let of_sources: Option<Vec<FunctionFact>> =
            from_json(upstream.query_catalogue(text, &[&array(&more)]).await?)?;
        facts.extend(of_sources.unwrap_or_default());
    }
    Ok(facts)
}

/// The catalogue's facts about a table. The fingerprint is queried first. If the table changes in between, the
/// fingerprint belongs to the earlier definition, and the first batch that relies on it detects the change.
async fn table_facts(upstream: &mut Upstream, name: &str) -> Result<Option<TableFacts>, upstream::Error> {
    let fingerprint =
        upstream.query_catalogue(include_str!("../../sql/table_fingerprint.sql"), &[name, ""]).await?;
    let partitions_max = limits::PARTITIONS_MAX.to_string();
    let text = include_str!("../../sql/table_facts.sql");
    let rows = upstream.query_catalogue(text, &[name, &partitions_max]).await?;
    let mut facts: Option<TableFacts> = from_json(rows)?;
    if facts.as_ref().is_some_and(|facts| facts.relkind == 'v')
        && let Some(below) = below_views(upstream, name, &partitions_max).await?
    {
        facts = Some(below);
    }
    if let Some(facts) = &mut facts
        && let Some([_, fingerprint, functions, ..]) = fingerprint.first().map(Vec::as_slice)
    {
        // A table that was just created has no fingerprint yet. This text equals no fingerprint.
        facts.fingerprint = fingerprint.clone().unwrap_or_else(|| "none".to_owned());
        let functions = functions.as_deref().map(serde_json::from_str).transpose();
        facts.trigger_functions = functions.unwrap_or_default().unwrap_or_default();
    }
    if let Some(facts) = facts.as_mut().filter(|facts| facts.has_citus) {
        let text = include_str!("../../sql/distribution.sql");
        facts.distribution = from_json(upstream.query_catalogue(text, &[name]).await?)?.map(Arc::new);
    }
    Ok(facts)
}

/// The views of a name.
#[derive(serde::Deserialize)]
struct Views {
    /// The OID of the relation below them.
    base: u32,
    views: Vec<View>,
}

/// The facts about the table that a view reads, if it is the only one.
async fn below_views(
    upstream: &mut Upstream,
    name: &str,
    partitions_max: &str,
) -> Result<Option<TableFacts>, upstream::Error> {
    let text = include_str!("../../sql/view_facts.sql");
    let rows = upstream.query_catalogue(text, &[name, &limits::VIEWS_MAX.to_string()]).await?;
    let Some(Views { base, views }) = from_json(rows)? else { return Ok(None) };
    let text = include_str!("../../sql/table_facts.sql");
    let rows = upstream.query_catalogue(text, &[&base.to_string(), partitions_max]).await?;
    let below: Option<TableFacts> = from_json(rows)?;
    Ok(below.map(|below| TableFacts { views, ..below }))
}

/// The merge rules for functions with this name.
async fn merge_rules(
    upstream: &mut Upstream,
    config: &Config,
    function: &String,
) -> Result<Vec<MergeRule>, upstream::Error> {
    let upstream_role = &config.upstream.user;
    // merge_rules is a function. It runs with the client's rights although the client has not called it.
    if !pack::is_trusted(upstream, upstream_role, MERGE_RULES).await? {
        return Ok(Vec::new());
    }
    let names = array(std::slice::from_ref(function));
    let rows = upstream.query_catalogue(include_str!("../../sql/merge_rules.sql"), &[&names]).await?;
    let has_citus = rows.first().and_then(|row| row.get(1)?.as_deref()) != Some("f");
    let mut rules: Vec<MergeRule> = from_json(rows)?.unwrap_or_default();
    let of_pack = |rule: &&mut MergeRule| rule.schema == "hotrow";
    rules.iter_mut().filter(|rule| !of_pack(rule)).for_each(|rule| rule.may_change_other_nodes = has_citus);
    if let Some(rule) = rules.iter_mut().find(of_pack)
        && pack::is_trusted(upstream, upstream_role, DISTRIBUTION_OF).await?
    {
        let text = include_str!("../../sql/call_distribution.sql");
        let found: Option<Distribution> = from_json(upstream.query_catalogue(text, &[function]).await?)?;
        let has_lanes = config.citus_lanes;
        rule.distribution = found.map(|found| Arc::new(Distribution { has_lanes, ..found }));
    }
    Ok(rules)
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
