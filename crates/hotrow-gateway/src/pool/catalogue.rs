//! A pool's questions to the catalogue: facts about a statement's table and names, the state that it leaves behind, and
//! the server's description of it. `hotrow-core` decides what follows from the answers.

use std::sync::Arc;

use hotrow_core::classify::{self, Candidate, Facts, FunctionFact, MergeRule, TableFacts};
use hotrow_core::limits;
use hotrow_core::session::{Proof, Statement as _};

use crate::pool::Pool;
use crate::server::held::{self, HeldConnection};
use crate::server::pack::{self, MERGE_RULES};
use crate::server::upstream;
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
        if candidate.has_computed_argument() {
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
            tables.extend(table_facts(&mut held, &name).await?);
        }
        let mut all = reach.names.clone();
        all.extend(reach.names_in_tables(&tables));
        let functions = function_facts(&mut held, all).await?;
        self.give_back(held);
        let is_clean = reach.is_clean(&tables, &functions);
        Ok(Proof { is_clean, moves_sequence: reach.moves_sequence(&tables) })
    }

    /// The catalogue's facts about a candidate.
    pub async fn facts(&self, candidate: &Candidate) -> Result<Facts, held::Error> {
        let mut held = self.take_own().await?;
        let table = match &candidate.table {
            Some(name) => table_facts(&mut held, &name.to_regclass()).await?,
            None => None,
        };
        let names = classify::names_to_look_up(candidate, table.as_ref());
        let functions = function_facts(&mut held, names).await?;
        let rules = match &candidate.call {
            Some(call) => merge_rules(&mut held, &self.config().upstream.user, &call.function.name).await?,
            None => Vec::new(),
        };
        let cached_sequences = classify::moves_any_sequence(candidate, table.as_ref()) && {
            let rows =
                held.upstream.query_catalogue(include_str!("../../sql/cached_sequences.sql"), &[]).await?;
            rows.first().and_then(|row| row.first()?.as_deref()) != Some("f")
        };
        self.give_back(held);
        Ok(Facts { table, functions, rules, cached_sequences })
    }
}

/// Objects outside `pg_catalog` with these names, and with names in the sources of users' functions; also users' casts,
/// which have no name in the text.
async fn function_facts(
    held: &mut HeldConnection,
    names: Vec<String>,
) -> Result<Vec<FunctionFact>, upstream::Error> {
    let text = include_str!("../../sql/function_facts.sql");
    let mut facts: Vec<FunctionFact> =
        from_json(held.upstream.query_catalogue(text, &[&array(&names)]).await?)?.unwrap_or_default();
    let mut more = classify::names_in_sources(&facts);
    more.retain(|name| !names.contains(name));
    if !more.is_empty() {
        let of_sources: Option<Vec<FunctionFact>> =
            from_json(held.upstream.query_catalogue(text, &[&array(&more)]).await?)?;
        facts.extend(of_sources.unwrap_or_default());
    }
    Ok(facts)
}

/// The catalogue's facts about a table. The fingerprint is queried first. If the table changes in between, the
/// fingerprint belongs to the earlier definition, and the first batch that relies on it detects the change.
async fn table_facts(held: &mut HeldConnection, name: &str) -> Result<Option<TableFacts>, upstream::Error> {
    let fingerprint =
        held.upstream.query_catalogue(include_str!("../../sql/table_fingerprint.sql"), &[name, ""]).await?;
    let partitions_max = limits::PARTITIONS_MAX.to_string();
    let text = include_str!("../../sql/table_facts.sql");
    let rows = held.upstream.query_catalogue(text, &[name, &partitions_max]).await?;
    let mut facts: Option<TableFacts> = from_json(rows)?;
    if let Some(facts) = &mut facts
        && let Some([_, fingerprint, functions, ..]) = fingerprint.first().map(Vec::as_slice)
    {
        // A table that was just created has no fingerprint yet. This text equals no fingerprint.
        facts.fingerprint = fingerprint.clone().unwrap_or_else(|| "none".to_owned());
        let functions = functions.as_deref().map(serde_json::from_str).transpose();
        facts.trigger_functions = functions.unwrap_or_default().unwrap_or_default();
    }
    Ok(facts)
}

/// The merge rules for functions with this name.
async fn merge_rules(
    held: &mut HeldConnection,
    upstream_role: &str,
    function: &String,
) -> Result<Vec<MergeRule>, upstream::Error> {
    // merge_rules is a function. It runs with the client's rights although the client has not called it.
    if !pack::is_trusted(&mut held.upstream, upstream_role, MERGE_RULES).await? {
        return Ok(Vec::new());
    }
    let names = array(std::slice::from_ref(function));
    let rows = held.upstream.query_catalogue(include_str!("../../sql/merge_rules.sql"), &[&names]).await?;
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
