//! Decides whether statements of a table can be packed, from its kind, rules, constraints, triggers and
//! expressions. The key is determined elsewhere.

use crate::distribution::Distribution;
use crate::key::KeySpec;

use crate::classify::facts::{Column, TableFacts, Trigger, TypeKind};
use crate::classify::judge::namesakes::Judge;
use crate::classify::known::functions::{Behaviour, behaviour};
use crate::classify::read::candidate::{Candidate, Verb};
use crate::classify::reason::Reason;
use crate::classify::text::source::Source;

/// Words with which a trigger function reaches beyond its row. EXCEPTION could catch the timeouts of a lane.
const REACHING_WORDS: &str = "
    alter analyze call close cluster cmax cmin commit copy create ctid cursor deallocate delete discard do
    drop exception execute explain fetch grant import insert listen load lock merge move notify open perform prepare
    query raise refresh reindex reset revoke rollback savepoint security select set show table tableoid temp
    temporary truncate unlisten update vacuum values with xmax xmin operator
";

/// Whether statements of this kind of table can be packed.
pub(crate) fn check_kind(table: &TableFacts) -> Result<(), Reason> {
    let not = |what| Reason::NotOrdinary { table: table.name.clone(), what };
    let kind = match table.relkind {
        'r' | 'p' => None,
        'v' => Some("a view"),
        'm' => Some("a materialized view"),
        'f' => Some("a foreign table"),
        _ => Some("not a table"),
    };
    let refused = [
        (kind.is_some(), kind.unwrap_or_default()),
        (!matches!(table.persistence, 'p' | 'u'), "a temporary table"),
        (matches!(table.schema.as_str(), "pg_catalog" | "information_schema"), "part of the catalog"),
        (table.has_rules, "rewritten by rules"),
        (table.row_security, "under row security"),
        (table.has_children && table.relkind != 'p', "inherited by other tables"),
        (table.is_partition, "a partition"),
    ];
    match (refused.iter().find(|(refused, _)| *refused), &table.odd_partition) {
        (Some((_, what)), _) => Err(not(what)),
        (None, Some(why)) => Err(Reason::Partition { table: table.name.clone(), why: why.clone() }),
        (None, None) => Ok(()),
    }
}

/// Whether every column that the statement mentions exists and no column has a type that runs unknown code.
pub(crate) fn check_columns(candidate: &Candidate, table: &TableFacts) -> Result<(), Reason> {
    if let Some(missing) = candidate.columns.iter().find(|name| table.column(name).is_none()) {
        return Err(Reason::NoColumn(missing.clone()));
    }
    match table.columns.iter().find(|column| column.type_kind == TypeKind::Other) {
        Some(column) => Err(Reason::ColumnType(column.name.clone())),
        None => Ok(()),
    }
}

/// Whether the statement can run on the one node that has its rows. There it means the same as elsewhere.
pub(crate) fn check_distribution(
    table: &TableFacts,
    distribution: &Distribution,
    key: Option<&KeySpec>,
    touches_sequence: bool,
) -> Result<(), Reason> {
    let not = |why| Err(Reason::Distributed { table: table.name.clone(), why });
    if let Err(why) = distribution.check() {
        return not(why);
    }
    if !key.is_some_and(|key| key.columns.iter().any(|column| column.name == distribution.column)) {
        return not("is distributed, and the statement does not show on which node its rows are");
    }
    if touches_sequence {
        return not("is distributed, and each node has its own values of a sequence");
    }
    if table.relkind == 'p' {
        return not("is distributed and partitioned");
    }
    // The OIDs of other types differ from node to node.
    if table.columns.iter().any(|column| column.type_kind != TypeKind::Builtin) {
        return not("is distributed and has columns of types that are not PostgreSQL's own");
    }
    Ok(())
}

/// Checks the code that runs when a row is written: constraints, triggers, foreign keys of other tables and
/// expressions.
pub(crate) fn check_writing(
    candidate: &Candidate,
    table: &TableFacts,
    judge: &Judge<'_>,
) -> Result<(), Reason> {
    if table.deferrable {
        return Err(Reason::Deferrable(table.name.clone()));
    }
    check_deferred(candidate, table)?;
    check_referrers(candidate, table)?;
    // The row would become another row in another partition.
    if let Some(column) = table.partition_key.iter().find(|column| candidate.assigned.contains(column)) {
        return Err(Reason::MovesRow(column.clone()));
    }
    let cached = |column: &&Column| column.cached_sequence && candidate.uses_default_of(column, table);
    if let Some(column) = table.columns.iter().find(cached) {
        return Err(Reason::CachedSequence(column.name.clone()));
    }
    let with_fields = |column: &&Column| {
        column.interval_fields
            && (candidate.assigned.contains(&column.name) || candidate.gives(&column.name, table))
    };
    if let Some(column) = table.columns.iter().find(with_fields) {
        return Err(Reason::IntervalFields(column.name.clone()));
    }
    for trigger in &table.triggers {
        if fires(trigger, candidate) {
            check_trigger(trigger, judge)?;
            if candidate.updates() {
                check_trigger_moves(trigger, table)?;
            }
        }
    }
    for (place, text) in expressions(candidate, table) {
        if let Some(name) = suspect(text, judge) {
            return Err(Reason::TableExpression { place, name });
        }
    }
    Ok(())
}

/// A deferred foreign key is checked at commit. A batch could therefore hide an error that the unit would get
/// alone.
fn check_deferred(candidate: &Candidate, table: &TableFacts) -> Result<(), Reason> {
    let sets = |name: &String| {
        let computed = |column: &Column| column.default.is_some() && candidate.uses_default_of(column, table);
        candidate.assigned.contains(name)
            || candidate.gives(name, table)
            || table.column(name).is_some_and(computed)
    };
    if table.deferred_columns.iter().any(sets) {
        return Err(Reason::Deferrable(table.name.clone()));
    }
    Ok(())
}

/// Foreign keys that refer to this table must not change rows of other tables, and their check must not be
/// deferred.
fn check_referrers(candidate: &Candidate, table: &TableFacts) -> Result<(), Reason> {
    for referrer in &table.referrers {
        let moves_key = referrer.columns.iter().any(|column| candidate.assigned.contains(column));
        let (concerned, acts) = match candidate.verb {
            Verb::Delete => (true, referrer.acts_on_delete),
            Verb::Update | Verb::Insert => (moves_key, referrer.acts_on_update),
            Verb::Select => (false, false),
        };
        if concerned && acts {
            return Err(Reason::Cascade(referrer.table.clone()));
        }
        if concerned && referrer.deferred {
            return Err(Reason::Deferrable(referrer.table.clone()));
        }
    }
    Ok(())
}

fn fires(trigger: &Trigger, candidate: &Candidate) -> bool {
    let updates = candidate.updates();
    (trigger.on_insert && candidate.verb == Verb::Insert)
        || (trigger.on_update && updates)
        || (trigger.on_delete && candidate.verb == Verb::Delete)
}

/// A trigger is harmless if its function can only read its row and call known functions.
fn check_trigger(trigger: &Trigger, judge: &Judge<'_>) -> Result<(), Reason> {
    let refuse = |why: String| Err(Reason::Trigger { name: trigger.name.clone(), why });
    if trigger.language != "plpgsql" {
        return refuse(format!("is written in {}", trigger.language));
    }
    if trigger.special {
        return refuse("runs with its own settings or privileges".to_owned());
    }
    let Some(source) = Source::read(&trigger.source) else {
        return refuse("has a source that cannot be parsed".to_owned());
    };
    if let Some(word) = source.mentions(REACHING_WORDS) {
        return refuse(format!("uses {word}"));
    }
    if source.reads_relation() {
        return refuse("reads a relation".to_owned());
    }
    let condition = match trigger.condition.as_deref().map(Source::read) {
        Some(None) => return refuse("has a condition that cannot be parsed".to_owned()),
        condition => condition.flatten(),
    };
    let sources: Vec<&Source> = std::iter::once(&source).chain(&condition).collect();
    let mut operators = sources.iter().flat_map(|source| source.operators());
    if let Some(operator) = operators.find(|name| !judge.operator(name)) {
        return refuse(format!("uses the operator {operator}, which is not known to be harmless"));
    }
    if sources.iter().any(|source| !judge.types(source)) {
        return refuse("uses a type that is not known to be harmless".to_owned());
    }
    for function in sources.iter().flat_map(|source| judge.functions(source)) {
        if let Err(reason) = judge.function(&function, false) {
            return refuse(format!("is not known to be harmless: {reason}"));
        }
    }
    Ok(())
}

/// A trigger that mentions a column of the partition key may move an updated row to another partition.
fn check_trigger_moves(trigger: &Trigger, table: &TableFacts) -> Result<(), Reason> {
    let source = Source::read(&trigger.source);
    let mentioned = source.and_then(|source| source.words().find(|word| table.partition_key.contains(word)));
    match mentioned {
        Some(column) => Err(Reason::Trigger {
            name: trigger.name.clone(),
            why: format!("uses {column}, which is in the partition key"),
        }),
        None => Ok(()),
    }
}

/// The first function, operator or type in a text of the catalog that is not known to be harmless.
pub(crate) fn suspect(text: &str, judge: &Judge<'_>) -> Option<String> {
    let Some(source) = Source::read(text) else { return Some("an unreadable expression".to_owned()) };
    let function =
        judge.functions(&source).into_iter().find(|function| judge.function(function, false).is_err());
    let operator = || source.operators().into_iter().find(|name| !judge.operator(name));
    let of_user = || (!judge.types(&source)).then(|| "a user-defined type".to_owned());
    function.map(|function| function.to_string()).or_else(operator).or_else(of_user)
}

/// The expressions that run when this statement writes, each with a description of its place.
fn expressions<'f>(candidate: &Candidate, table: &'f TableFacts) -> Vec<(String, &'f str)> {
    let mut all: Vec<_> =
        table.expressions.iter().map(|text| ("a check or index".to_owned(), text.as_str())).collect();
    for column in &table.columns {
        if let Some(default) = &column.default
            && (column.generated || candidate.uses_default_of(column, table))
        {
            all.push((format!("column {}", column.name), default));
        }
    }
    all
}

/// The names in code that runs when this statement writes, for the second catalog query.
pub(crate) fn names_called(candidate: &Candidate, table: &TableFacts) -> Vec<String> {
    let triggers = table.triggers.iter().filter(|trigger| fires(trigger, candidate));
    names_in(
        expressions(candidate, table).into_iter().map(|(_, text)| text).chain(triggers.flat_map(sources)),
    )
}

/// Whether one of the triggers that this statement fires advances a sequence.
pub(crate) fn triggers_move_sequence(candidate: &Candidate, table: &TableFacts) -> bool {
    let triggers = table.triggers.iter().filter(|trigger| fires(trigger, candidate));
    names_in(triggers.flat_map(sources)).iter().any(|name| is_sequence_function(name))
}

/// Whether an expression that runs when this statement writes, or an identity column, advances a sequence.
pub(crate) fn expressions_move_sequence(candidate: &Candidate, table: &TableFacts) -> bool {
    let identity = |column: &Column| column.identity && candidate.uses_default_of(column, table);
    let texts = expressions(candidate, table).into_iter().map(|(_, text)| text);
    table.columns.iter().any(identity) || names_in(texts).iter().any(|name| is_sequence_function(name))
}

/// Whether this can be the name of a function that advances a sequence.
pub(crate) fn is_sequence_function(name: &str) -> bool {
    matches!(behaviour(name), Behaviour::MovesSequence | Behaviour::SetsSequence)
}

fn sources(trigger: &Trigger) -> impl Iterator<Item = &str> {
    [Some(trigger.source.as_str()), trigger.condition.as_deref()].into_iter().flatten()
}

pub(crate) fn names_in<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    texts.filter_map(Source::read).flat_map(|source| source.names()).collect()
}

impl TableFacts {
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
