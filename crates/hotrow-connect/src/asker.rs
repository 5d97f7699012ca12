//! A connection for questions about the catalog. Its queries are prepared once. `hotrow-core` decides what to ask, and what
//! follows from the answers.

use std::sync::Arc;

use bytes::Bytes;
use hotrow_core::classify::{
    Answers, Asked, Candidate, Catalog, Facts, FunctionFact, MergeRule, PackRule, Questions, Refusal, Rules,
    TableFacts, View,
};
use hotrow_core::distribution::Distribution;
use hotrow_core::limits;
use hotrow_core::settings::array;

use crate::pack::{self, DISTRIBUTION_OF, MERGE_RULES, PACK_RULES};
use crate::upstream::{Error, Rows, Upstream};

/// A query for the fingerprint of a table's definition. The file describes its parameters.
pub const TABLE_FINGERPRINT: &str = include_str!("../sql/table_fingerprint.sql");

/// A connection for questions.
#[derive(Debug)]
pub struct Asker {
    /// The connection. Its session has the settings of the pool's clients.
    pub upstream: Upstream,
    /// The role of the gateway's own commands. Its hotrow schema is trusted.
    upstream_role: String,
    /// Tables that are distributed over nodes have lanes there.
    pub has_node_lanes: bool,
    /// The queries that are prepared on it.
    prepared: Vec<&'static str>,
}

impl Asker {
    /// Takes over a connection to a primary.
    pub async fn new(
        mut upstream: Upstream,
        upstream_role: &str,
        has_node_lanes: bool,
    ) -> Result<Self, Error> {
        upstream.query(include_str!("../sql/own_session.sql"), &[]).await?;
        Ok(Asker { upstream, upstream_role: upstream_role.to_owned(), has_node_lanes, prepared: Vec::new() })
    }

    /// Answers all of these questions. The server can refuse single ones.
    pub async fn answer(&mut self, questions: &Questions) -> Result<Answers, Error> {
        let mut answers = Answers::default();
        for name in &questions.tables {
            answers.tables.push((name.clone(), or_refusal(self.table(name).await)?));
        }
        if !questions.objects.is_empty() {
            answers.names = questions.objects.iter().cloned().collect();
            answers.objects = Some(or_refusal(self.objects(&answers.names).await)?);
        }
        for function in &questions.rules {
            answers.rules.push((function.clone(), or_refusal(self.rules(function).await)?));
        }
        if questions.cached_sequences {
            let rows = self.query(include_str!("../sql/cached_sequences.sql"), &[]).await;
            let is_cached = |rows: Rows| rows.first().and_then(|row| row.first()?.as_deref()) != Some("f");
            answers.cached_sequences = Some(or_refusal(rows.map(is_cached))?);
        }
        Ok(answers)
    }

    /// The facts about a candidate on this server, all asked now.
    pub async fn facts(&mut self, candidate: &Candidate) -> Result<Facts, Error> {
        let mut known = Catalog::default();
        loop {
            let lack = match known.facts(candidate, Asked::default()) {
                Ok(found) => return Ok(found.value),
                Err(lack) => lack,
            };
            if let Some(Refusal { code, message }) = lack.refusal.map(|refusal| *refusal) {
                return Err(Error::Refused { code, message, frame: Bytes::new() });
            }
            let answers = self.answer(&lack.questions).await?;
            known.put(answers, Asked::default());
        }
    }

    /// The rows of a query of the gateway, which stays prepared.
    pub async fn query(&mut self, text: &'static str, values: &[&str]) -> Result<Rows, Error> {
        let place = self.prepared.iter().position(|prepared| *prepared == text);
        let name = format!("hotrow_question_{}", place.unwrap_or(self.prepared.len()));
        let rows = self.upstream.query_prepared(&name, place.is_none().then_some(text), values).await?;
        if place.is_none() {
            self.prepared.push(text);
        }
        Ok(rows)
    }

    /// Objects outside `pg_catalog` with these names, and objects without a name.
    async fn objects(&mut self, names: &[String]) -> Result<Vec<FunctionFact>, Error> {
        let rows = self.query(include_str!("../sql/function_facts.sql"), &[&array(names)]).await?;
        Ok(from_json(rows)?.unwrap_or_default())
    }

    /// The catalog's facts about a table. The fingerprint is queried first. If the table changes in between, the
    /// fingerprint belongs to the earlier definition, and the first batch that relies on it detects the change.
    async fn table(&mut self, name: &str) -> Result<Option<TableFacts>, Error> {
        let fingerprint = self.query(TABLE_FINGERPRINT, &[name, ""]).await?;
        let partitions_max = limits::PARTITIONS_MAX.to_string();
        let rows = self.query(include_str!("../sql/table_facts.sql"), &[name, &partitions_max]).await?;
        let mut facts: Option<TableFacts> = from_json(rows)?;
        if facts.as_ref().is_some_and(|facts| facts.relkind == 'v')
            && let Some(below) = self.below_views(name, &partitions_max).await?
        {
            facts = Some(below);
        }
        let Some(mut facts) = facts else { return Ok(None) };
        if let Some([_, fingerprint, functions, ..]) = fingerprint.first().map(Vec::as_slice) {
            // A table that was just created has no fingerprint yet. This text equals no fingerprint.
            facts.fingerprint = fingerprint.clone().unwrap_or_else(|| "none".to_owned());
            let functions = functions.as_deref().map(serde_json::from_str).transpose();
            facts.trigger_functions = functions.unwrap_or_default().unwrap_or_default();
        }
        if facts.has_citus {
            let found = self.query(include_str!("../sql/distribution.sql"), &[name]).await?;
            let found: Option<Distribution> = from_json(found)?;
            facts.distribution = found.map(|found| self.with_lanes(found));
        }
        Ok(Some(facts))
    }

    /// The facts about the table that a view reads, if it is the only one.
    async fn below_views(&mut self, name: &str, partitions_max: &str) -> Result<Option<TableFacts>, Error> {
        let text = include_str!("../sql/view_facts.sql");
        let rows = self.query(text, &[name, &limits::VIEWS_MAX.to_string()]).await?;
        let Some(Views { base, views }) = from_json(rows)? else { return Ok(None) };
        let text = include_str!("../sql/table_facts.sql");
        let below: Option<TableFacts> =
            from_json(self.query(text, &[&base.to_string(), partitions_max]).await?)?;
        Ok(below.map(|below| TableFacts { views, ..below }))
    }

    /// The rules for functions with this name.
    async fn rules(&mut self, function: &String) -> Result<Rules, Error> {
        Ok(Rules { merge: self.merge_rules(function).await?, pack: self.pack_rules(function).await? })
    }

    /// The pack rules for functions with this name.
    async fn pack_rules(&mut self, function: &String) -> Result<Vec<PackRule>, Error> {
        // pack_rules is a function. It runs with the client's rights although the client has not called it.
        if !pack::is_trusted(&mut self.upstream, &self.upstream_role, PACK_RULES).await? {
            return Ok(Vec::new());
        }
        let rows = self.upstream.query(include_str!("../sql/pack_rules.sql"), &[&array([function])]).await?;
        let has_citus = has_citus(&rows);
        let mut rules: Vec<PackRule> = from_json(rows)?.unwrap_or_default();
        rules.iter_mut().for_each(|rule| rule.may_change_other_nodes = has_citus);
        Ok(rules)
    }

    /// The merge rules for functions with this name.
    async fn merge_rules(&mut self, function: &String) -> Result<Vec<MergeRule>, Error> {
        // merge_rules is a function. It runs with the client's rights although the client has not called it.
        if !pack::is_trusted(&mut self.upstream, &self.upstream_role, MERGE_RULES).await? {
            return Ok(Vec::new());
        }
        let names = array([function]);
        let rows = self.upstream.query(include_str!("../sql/merge_rules.sql"), &[&names]).await?;
        let has_citus = has_citus(&rows);
        let mut rules: Vec<MergeRule> = from_json(rows)?.unwrap_or_default();
        let of_pack = |rule: &&mut MergeRule| rule.schema == "hotrow";
        rules
            .iter_mut()
            .filter(|rule| !of_pack(rule))
            .for_each(|rule| rule.may_change_other_nodes = has_citus);
        if let Some(rule) = rules.iter_mut().find(of_pack)
            && pack::is_trusted(&mut self.upstream, &self.upstream_role, DISTRIBUTION_OF).await?
        {
            let text = include_str!("../sql/call_distribution.sql");
            let found: Option<Distribution> = from_json(self.upstream.query(text, &[function]).await?)?;
            rule.distribution = found.map(|found| self.with_lanes(found));
        }
        Ok(rules)
    }

    fn with_lanes(&self, found: Distribution) -> Arc<Distribution> {
        Arc::new(Distribution { has_lanes: self.has_node_lanes, ..found })
    }
}

/// The views of a name.
#[derive(serde::Deserialize)]
struct Views {
    /// The OID of the relation below them.
    base: u32,
    views: Vec<View>,
}

/// Whether the second column of an answer says that the database has Citus.
fn has_citus(rows: &Rows) -> bool {
    rows.first().and_then(|row| row.get(1)?.as_deref()) != Some("f")
}

/// An answer, or the server's refusal, which concerns one question only.
fn or_refusal<T>(answer: Result<T, Error>) -> Result<Result<T, Refusal>, Error> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(Error::Refused { code, message, .. }) => Ok(Err(Refusal { code, message })),
        Err(error) => Err(error),
    }
}

/// The JSON in the first column of the first row. None if there is no row, or null.
pub fn from_json<T: serde::de::DeserializeOwned>(rows: Rows) -> Result<Option<T>, Error> {
    match rows.first().and_then(|row| row.first()) {
        Some(Some(json)) => serde_json::from_str(json)
            .map(Some)
            .map_err(|error| Error::Protocol(format!("facts about the catalog: {error}"))),
        _ => Ok(None),
    }
}
