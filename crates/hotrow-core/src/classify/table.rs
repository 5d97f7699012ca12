//! Whether a table lets its statements be packed: kind, rules, constraints, triggers, expressions; never which key.

use super::judge::Judge;
use super::source::Source;
use super::{Candidate, Column, FunctionName, Reason, TableFacts, Trigger, TypeKind, Verb};

/// Words that let a trigger function reach beyond the row it was given.
const REACHING_WORDS: &str = "
    alter analyze call close cluster cmax cmin commit copy create ctid cursor deallocate delete discard do
    drop execute explain fetch grant import insert listen load lock merge move notify open perform prepare
    query raise refresh reindex reset revoke rollback savepoint security select set show table tableoid temp
    temporary truncate unlisten update vacuum values with xmax xmin
";

/// Whether the table is of a kind whose statements can be packed.
pub(super) fn check_kind(table: &TableFacts) -> Result<(), Reason> {
    let not = |what| Reason::NotOrdinary { table: table.name.clone(), what };
    let kind = match table.relkind {
        'r' => None,
        'p' => Some("a partitioned table"),
        'v' => Some("a view"),
        'm' => Some("a materialized view"),
        'f' => Some("a foreign table"),
        _ => Some("not a table"),
    };
    let refused = [
        (kind.is_some(), kind.unwrap_or_default()),
        (!matches!(table.persistence, 'p' | 'u'), "a temporary table"),
        (matches!(table.schema.as_str(), "pg_catalog" | "information_schema"), "part of the catalogue"),
        (table.has_rules, "rewritten by rules"),
        (table.row_security, "under row security"),
        (table.has_children, "inherited by other tables"),
        (table.is_partition, "a partition"),
    ];
    match refused.iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(not(what)),
        None => Ok(()),
    }
}

/// Whether every column the statement mentions exists and none has a type that runs unknown code.
pub(super) fn check_columns(candidate: &Candidate, table: &TableFacts) -> Result<(), Reason> {
    if let Some(missing) = candidate.columns.iter().find(|name| table.column(name).is_none()) {
        return Err(Reason::NoColumn(missing.clone()));
    }
    match table.columns.iter().find(|column| column.type_kind == TypeKind::Other) {
        Some(column) => Err(Reason::ColumnType(column.name.clone())),
        None => Ok(()),
    }
}

/// What else runs when a row is written: constraints, triggers, foreign keys of other tables, expressions.
pub(super) fn check_writing(
    candidate: &Candidate,
    table: &TableFacts,
    judge: &Judge<'_>,
) -> Result<(), Reason> {
    if table.deferrable {
        return Err(Reason::Deferrable(table.name.clone()));
    }
    check_deferred(candidate, table)?;
    check_referrers(candidate, table)?;
    for trigger in &table.triggers {
        if fires(trigger, candidate) {
            check_trigger(trigger, judge)?;
        }
    }
    for (place, text) in expressions(candidate, table) {
        for function in called(text) {
            judge
                .function(&function)
                .map_err(|_| Reason::TableExpression { place: place.clone(), name: function.to_string() })?;
        }
    }
    Ok(())
}

/// A deferred foreign key is checked at commit, so a batch could hide an error that the unit alone would meet.
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

/// Foreign keys that refer to this table must not change rows of other tables, nor put their check off.
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

/// A trigger is harmless when its function can do nothing but look at its row and call known functions.
fn check_trigger(trigger: &Trigger, judge: &Judge<'_>) -> Result<(), Reason> {
    let refuse = |why: String| Err(Reason::Trigger { name: trigger.name.clone(), why });
    if trigger.language != "plpgsql" {
        return refuse(format!("is written in {}", trigger.language));
    }
    if trigger.special {
        return refuse("runs with settings or rights of its own".to_owned());
    }
    let Some(source) = Source::read(&trigger.source) else {
        return refuse("has a source that can't be read".to_owned());
    };
    if let Some(word) = source.mentions(REACHING_WORDS) {
        return refuse(format!("uses {word}"));
    }
    let condition = trigger.condition.as_deref().map(called).unwrap_or_default();
    for function in source.functions().iter().chain(&condition) {
        if let Err(reason) = judge.function(function) {
            return refuse(format!("is not known to be harmless: {reason}"));
        }
    }
    Ok(())
}

/// The functions a text of the catalogue's calls; a text that can't be read counts as a call of something unknown.
fn called(text: &str) -> Vec<FunctionName> {
    match Source::read(text) {
        Some(source) => source.functions(),
        None => {
            vec![FunctionName { schema: Some("?".to_owned()), name: "an unreadable expression".to_owned() }]
        }
    }
}

/// The expressions that run when this statement writes, each with the place it stands in.
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

/// The names a table's own expressions and triggers call, for the second look into the catalogue.
pub(super) fn names_called(candidate: &Candidate, table: &TableFacts) -> Vec<String> {
    let triggers = table.triggers.iter().filter(|trigger| fires(trigger, candidate));
    let sources = triggers.flat_map(|t| [Some(t.source.as_str()), t.condition.as_deref()]).flatten();
    let texts = expressions(candidate, table).into_iter().map(|(_, text)| text).chain(sources);
    texts.flat_map(called).map(|function| function.name).collect()
}

impl TableFacts {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
