//! The gateway's decision about a statement in front of MariaDB, with the reason. Pure.

use std::sync::LazyLock;

use hotrow_core::page;
use hotrow_mysql_client::{INSTALL, statements as script};
use hotrow_mysql_core::questions::identifier;
use hotrow_mysql_core::reader::{self, Kind};
use hotrow_mysql_core::table::{Table, number};

use crate::mariadb::recording::{Abilities, Facts, Recording, Statement, TableName};
use crate::mariadb::texts;

/// The decision about a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub kind: VerdictKind,
    /// Why.
    pub reason: String,
    /// What to do instead.
    pub remedy: Option<String>,
    /// The table, if the statement's form can be packed.
    pub table: Option<TableName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    Packed,
    #[serde(rename = "passed through")]
    PassedThrough,
    /// It begins or ends a transaction.
    Transaction,
    /// A lane or a session of a gateway runs it on its own behalf.
    Gateway,
    /// The doctor cannot say.
    Unknown,
}

impl VerdictKind {
    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            VerdictKind::Packed => "packed",
            VerdictKind::PassedThrough => "passed through",
            VerdictKind::Transaction => "transaction",
            VerdictKind::Gateway => "gateway",
            VerdictKind::Unknown => "unknown",
        }
    }
}

/// Why the gateway would pack no statement on this server, and what to change. None if it would.
pub fn server_refuses(abilities: &Abilities) -> Option<(&'static str, &'static str)> {
    if abilities.has_binary_log && abilities.binlog_format == "STATEMENT" {
        return Some(("binlog_format is STATEMENT", "set global binlog_format = 'ROW'"));
    }
    if abilities.rolls_back_on_timeout {
        return Some((
            "innodb_rollback_on_timeout is on",
            "start the server without innodb_rollback_on_timeout",
        ));
    }
    abilities.tracks_transactions.then_some((
        "the server tells its clients of their transactions",
        "set global session_track_transaction_info = 'OFF', and leave last_gtid and * out of session_track_system_variables",
    ))
}

fn verdict(kind: VerdictKind, reason: impl Into<String>, remedy: Option<&str>) -> Verdict {
    Verdict { kind, reason: reason.into(), remedy: remedy.map(str::to_owned), table: None }
}

fn passed(reason: impl Into<String>, remedy: Option<&str>) -> Verdict {
    verdict(VerdictKind::PassedThrough, reason, remedy)
}

/// The decision about a statement of a recording.
pub fn judge(recording: &Recording, statement: &Statement) -> Verdict {
    if statement.is_cut {
        return verdict(VerdictKind::Unknown, "its text is too long for the doctor", None);
    }
    if is_of_gateway(&statement.shape) {
        return verdict(VerdictKind::Gateway, "a gateway runs it on its own behalf", None);
    }
    let first = first_word(&statement.shape);
    if is_boundary(&first, &statement.shape) {
        return verdict(VerdictKind::Transaction, "it begins or ends a transaction", None);
    }
    if first == "select" && statement.shape.to_ascii_lowercase().contains("for update") {
        let remedy = "one UPDATE with the condition in its WHERE, instead of SELECT FOR UPDATE, a decision and an UPDATE";
        return passed("it locks rows for a later statement of its transaction", Some(remedy));
    }
    if !["update", "delete", "insert", "replace"].contains(&first.as_str()) {
        return passed("only UPDATE, DELETE, INSERT and REPLACE by key are packed", None);
    }
    let texts = texts::with_values(&statement.example);
    let Some(read) = texts.first().and_then(|text| reader::read(text)) else {
        return passed(
            "its form is not one that is packed",
            Some(concat!(
                "change one table, with WHERE column = value for each column of a unique key (",
                page!("mysql/README.md#packing"),
                ")"
            )),
        );
    };
    let Some(database) = read.database.or(statement.database.as_deref()) else {
        return passed(
            "its session has no database",
            Some("write the table with its database, or use a database"),
        );
    };
    let name = TableName { database: database.to_owned(), table: read.table.to_owned() };
    let facts = recording.tables.get(&name);
    let judged = judge_on_table(&recording.abilities, &name, facts, &texts);
    Verdict { table: Some(name), ..judged }
}

fn judge_on_table(
    abilities: &Abilities,
    name: &TableName,
    facts: Option<&Facts>,
    texts: &[String],
) -> Verdict {
    let Some(Facts { table: Some(table), shows_triggers }) = facts else {
        let grant = format!("grant select on {} to {}", quoted(name), abilities.account);
        return verdict(
            VerdictKind::Unknown,
            format!("the doctor cannot see the table {name}"),
            Some(&grant),
        );
    };
    if let Some((reason, remedy)) = unusual(table) {
        return passed(reason, remedy);
    }
    if let Some((reason, remedy)) = server_refuses(abilities) {
        return passed(reason, Some(remedy));
    }
    let packs = |text: &String| {
        let statement = reader::read(text)?;
        table.keys(number(&name.database, &name.table), &statement)
    };
    if texts.iter().find_map(packs).is_none() {
        return passed(without_key(table, &texts[0]), None);
    }
    if *shows_triggers {
        return verdict(VerdictKind::Packed, "it gives all columns of a unique key", None);
    }
    let grant = format!("grant trigger on {} to {}", quoted(name), abilities.account);
    verdict(
        VerdictKind::Packed,
        "it gives all columns of a unique key, and the table may have no trigger, which the doctor cannot see",
        Some(&grant),
    )
}

/// What keeps all statements on a table from being packed.
fn unusual(table: &Table) -> Option<(String, Option<&'static str>)> {
    let parts: Vec<&str> = table.definition.split(':').collect();
    let (engine, kind, triggers, expressions) = match parts.as_slice() {
        [kind, ..] if kind.ends_with("VIEW") => {
            return Some((format!("it is about a {}", kind.to_lowercase()), None));
        }
        [engine, kind, _, triggers, expressions, ..] => (*engine, *kind, *triggers, *expressions),
        _ => return Some(("its table is of an unknown kind".to_owned(), None)),
    };
    if engine != "InnoDB" {
        return Some((format!("its table has the engine {engine}"), Some("alter table ... engine = InnoDB")));
    }
    if kind != "BASE TABLE" {
        return Some((format!("its table is a {}", kind.to_lowercase()), None));
    }
    if triggers != "0" {
        let remedy = "do the trigger's work in the statement or in the application, and drop the trigger";
        return Some(("its table has a trigger".to_owned(), Some(remedy)));
    }
    let reason = "its table has a default, a generated column or a CHECK that calls a function";
    (expressions != "0").then(|| (reason.to_owned(), None))
}

/// Why a statement on a plain table has no key.
fn without_key(table: &Table, text: &str) -> String {
    let Some(statement) = reader::read(text) else { return "its form is not one that is packed".to_owned() };
    let is_key =
        |name: &str| table.keys.iter().flatten().any(|(column, _)| column.eq_ignore_ascii_case(name));
    if let Some(column) = statement.assigned.iter().find(|name| is_key(name)) {
        return format!("it changes {column}, a column of a unique key");
    }
    let inserts = matches!(statement.kind, Kind::Insert | Kind::Replace);
    let gives = |column: &str| {
        let mut row = statement.rows.iter();
        row.all(|row| row.iter().any(|(name, _)| name.eq_ignore_ascii_case(column)))
    };
    if let Some(column) = table.generated.as_deref().filter(|column| inserts && !gives(column)) {
        return format!("it leaves the number of the AUTO_INCREMENT column {column} to the server");
    }
    let named = table.keys.iter().any(|key| key.iter().all(|(column, _)| gives(column)));
    if named {
        return "it gives a key whose value has not the type of its column, has too many rows, or returns too much".to_owned();
    }
    let keys: Vec<String> = table
        .keys
        .iter()
        .map(|key| key.iter().map(|(column, _)| column.as_str()).collect::<Vec<_>>().join(" and "))
        .collect();
    match keys.is_empty() {
        true => "its table has no primary or unique key".to_owned(),
        false => format!("it does not give all columns of a unique key ({})", keys.join(", or ")),
    }
}

/// The names of the routines that packing needs.
pub static ROUTINES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |statement: String| {
        let rest = statement.strip_prefix("create or replace ")?.split_once("hotrow.")?.1.to_owned();
        rest.split('(').next().map(str::to_owned)
    };
    script(INSTALL).into_iter().filter_map(name).collect()
});

/// Whether a text calls a routine of the gateway, or watches a table as a lane does.
pub fn is_of_gateway(shape: &str) -> bool {
    let watches =
        shape.strip_prefix("handler h").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if watches || shape.starts_with("handler `") {
        return true;
    }
    let is_routine =
        |call: &str| call.split_once('(').is_some_and(|(name, _)| ROUTINES.iter().any(|one| one == name));
    shape.split("hotrow.").skip(1).any(is_routine)
}

/// The first word of a text, in lower case.
fn first_word(shape: &str) -> String {
    shape.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase()
}

fn is_boundary(first: &str, shape: &str) -> bool {
    match first {
        "begin" | "commit" | "rollback" => true,
        "start" => shape.to_ascii_lowercase().contains("transaction"),
        "set" => shape.to_ascii_lowercase().contains("autocommit"),
        _ => false,
    }
}

/// A table's name as SQL needs it.
pub fn quoted(name: &TableName) -> String {
    format!("{}.{}", identifier(&name.database), identifier(&name.table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_mysql_core::table::ColumnType::{Integer, Other, Text};

    fn recording(definition: &str) -> Recording {
        let column = |name: &str, kind| (name.to_owned(), kind);
        let table = Table {
            definition: format!("{definition}:77"),
            columns: vec![
                column("id", Integer),
                column("name", Text),
                column("stock", Integer),
                column("at", Other),
            ],
            generated: Some("id".to_owned()),
            keys: vec![vec![column("id", Integer)], vec![column("name", Text)]],
            has_short_rows: true,
        };
        let name = TableName { database: "shop".to_owned(), table: "item".to_owned() };
        let abilities = Abilities {
            account: "'monitor'@'%'".to_owned(),
            has_binary_log: true,
            binlog_format: "ROW".to_owned(),
            ..Abilities::default()
        };
        let facts = Facts { table: Some(table), shows_triggers: true };
        Recording { abilities, tables: [(name, facts)].into(), ..Recording::default() }
    }

    const PLAIN: &str = "InnoDB:BASE TABLE:1:0:0";
    const UPDATE: &str = "update item set stock = stock - 1 where id = 7";

    fn verdict_on(recording: &Recording, sql: &str) -> Verdict {
        let shape = texts::without_values(sql);
        let database = Some("shop".to_owned());
        judge(recording, &Statement { database, shape, example: sql.to_owned(), is_cut: false })
    }

    #[test]
    fn statements_by_key_are_packed() {
        let recording = recording(PLAIN);
        for sql in [
            UPDATE,
            "update item set stock = ? where name = ?",
            "delete from shop.item where id = 7",
            "insert into item (id, stock) values (7, 1) on duplicate key update stock = stock + 1",
        ] {
            assert_eq!(verdict_on(&recording, sql).kind, VerdictKind::Packed, "{sql}");
        }
    }

    #[test]
    fn the_reason_says_what_keeps_a_statement_from_being_packed() {
        let recording = recording(PLAIN);
        for (sql, kind, reason) in [
            ("select 1", VerdictKind::PassedThrough, "only UPDATE"),
            ("SELECT * FROM item WHERE id = 7 FOR UPDATE", VerdictKind::PassedThrough, "a later statement"),
            ("START  TRANSACTION", VerdictKind::Transaction, "begins or ends"),
            ("set autocommit = 0", VerdictKind::Transaction, "begins or ends"),
            ("call hotrow.mark('a', 7)", VerdictKind::Gateway, "on its own behalf"),
            ("call hotrow.clear()", VerdictKind::Gateway, "on its own behalf"),
            ("handler `shop`.`item` open as h0", VerdictKind::Gateway, "on its own behalf"),
            ("handler h0 read `PRIMARY` prev", VerdictKind::Gateway, "on its own behalf"),
            ("handler item read first", VerdictKind::PassedThrough, "only UPDATE"),
            ("select hotrow.price(7)", VerdictKind::PassedThrough, "only UPDATE"),
            (
                "update item set stock = 1 where stock = 7",
                VerdictKind::PassedThrough,
                "a unique key (id, or name)",
            ),
            ("update item set name = 'x' where id = 7", VerdictKind::PassedThrough, "it changes name"),
            ("insert into item (name) values ('x')", VerdictKind::PassedThrough, "AUTO_INCREMENT column id"),
            ("update item set stock = 1 where id = '7'", VerdictKind::PassedThrough, "not the type"),
            ("update item set stock = rand() where id = 7", VerdictKind::PassedThrough, "its form"),
            (
                "update other set stock = 1 where id = 7",
                VerdictKind::Unknown,
                "cannot see the table shop.other",
            ),
        ] {
            let verdict = verdict_on(&recording, sql);
            assert_eq!(verdict.kind, kind, "{sql}: {verdict:?}");
            assert!(verdict.reason.contains(reason), "{sql}: {verdict:?}");
        }
        let hidden = verdict_on(&recording, "update other set a = 1 where id = 7");
        assert_eq!(hidden.remedy.as_deref(), Some("grant select on `shop`.`other` to 'monitor'@'%'"));
    }

    #[test]
    fn the_kind_of_the_table_and_its_triggers_decide() {
        for (definition, reason) in [
            ("MyISAM:BASE TABLE:0:0:0", "the engine MyISAM"),
            ("VIEW:0:0:0", "a view"),
            ("InnoDB:SYSTEM VERSIONED:0:0:0", "a system versioned"),
            ("InnoDB:BASE TABLE:0:1:0", "has a trigger"),
            ("InnoDB:BASE TABLE:0:0:1", "calls a function"),
        ] {
            let verdict = verdict_on(&recording(definition), UPDATE);
            assert_eq!(verdict.kind, VerdictKind::PassedThrough, "{definition}: {verdict:?}");
            assert!(verdict.reason.contains(reason), "{definition}: {verdict:?}");
        }
        let mut hidden = recording(PLAIN);
        hidden.tables.values_mut().for_each(|facts| facts.shows_triggers = false);
        let verdict = verdict_on(&hidden, UPDATE);
        assert_eq!(verdict.remedy.as_deref(), Some("grant trigger on `shop`.`item` to 'monitor'@'%'"));
    }

    #[test]
    fn settings_of_the_server_can_keep_everything_from_being_packed() {
        let mut recording = recording(PLAIN);
        recording.abilities.binlog_format = "STATEMENT".to_owned();
        let verdict = verdict_on(&recording, UPDATE);
        assert_eq!(verdict.remedy.as_deref(), Some("set global binlog_format = 'ROW'"));
        recording.abilities.has_binary_log = false;
        assert_eq!(verdict_on(&recording, UPDATE).kind, VerdictKind::Packed);
        recording.abilities.rolls_back_on_timeout = true;
        assert!(verdict_on(&recording, UPDATE).reason.contains("innodb_rollback_on_timeout"));
    }
}
