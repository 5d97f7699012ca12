//! Compares docs/packed.md and docs/reasons.md with the verdicts, reasons and remedies of the code. To renew the second page after a
//! change, run `HOTROW_GOLDEN=write cargo test -p hotrow-core pages`, then read the diff.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::catalog::trigger;
use super::distributed::distributed;
use super::namesakes::function;
use super::views::view;
use super::*;
use crate::limits;

const RENEW: &str = "run `HOTROW_GOLDEN=write cargo test -p hotrow-core pages` and read the diff";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// The tables of the pages' examples.
fn example(name: &str) -> Option<TableFacts> {
    let key = |name: &str, columns: &[&str]| index(name, true, columns);
    let item = [("id", "integer"), ("stock", "integer"), ("sku", "text"), ("note", "text")];
    let line = [("order_id", "uuid"), ("no", "integer"), ("quantity", "bigint")];
    let account = [("id", "bigint"), ("email", "text"), ("name", "text")];
    let job = [("id", "bigint"), ("queue", "text"), ("state", "text")];
    let mut account = table(
        602,
        "account",
        &account,
        vec![key("account_pkey", &["id"]), index("account_email_key", false, &["email"])],
    );
    account.columns[0].default = Some("nextval('account_id_seq'::regclass)".to_owned());
    let all = [
        table(600, "item", &item, vec![index("item_sku_key", false, &["sku"]), key("item_pkey", &["id"])]),
        table(601, "line", &line, vec![key("line_pkey", &["order_id", "no"])]),
        account,
        table(603, "log", &[("at", "timestamptz"), ("message", "text")], Vec::new()),
        table(604, "job", &job, vec![key("job_pkey", &["id"])]),
    ];
    all.into_iter().find(|table| table.name == name)
}

fn facts_of_example(candidate: &Candidate) -> Facts {
    let with = candidate.with.iter().map(|common| facts_of_example(&common.statement)).collect();
    Facts { table: candidate.table.as_ref().and_then(|name| example(&name.name)), with, ..Facts::default() }
}

/// What `hotrow explain` says about a statement.
struct Explained {
    verdict: String,
    reason: String,
    instead: String,
    /// The reason as the code has it.
    variants: String,
}

fn explained(sql: &str, change: fn(&mut Facts)) -> Explained {
    let analysis = analyse(sql);
    let decision = match &analysis {
        Analysis::Candidate(candidate) => {
            let mut facts = facts_of_example(candidate);
            change(&mut facts);
            Some(decide(candidate, &facts, &[]))
        }
        _ => None,
    };
    let text = explain(&analysis, decision.as_ref(), &[]);
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        found.trim().to_owned()
    };
    let variants = match (&analysis, &decision) {
        (Analysis::Pass(pass), _) => format!("{:?}", pass.reason),
        (_, Some(Decision::Pass { reason, .. })) => format!("{reason:?}"),
        _ => String::new(),
    };
    Explained {
        verdict: text.lines().next().unwrap_or_default().to_owned(),
        reason: line("  reason "),
        instead: line("  instead "),
        variants,
    }
}

/// The cells of a row, if the line is one. A bar in a cell is written as `\|`.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix("| ")?.strip_suffix('|')?.replace("\\|", "\u{0}");
    Some(inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect())
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

/// A text of the program, with links to the pages that it names.
fn linked(text: &str) -> String {
    hotrow_testkit::linked(text, crate::page!(""))
}

/// The statement of a row's first cell.
fn statement(cell: &str) -> Option<String> {
    let text = cell.strip_prefix('`')?.split('`').next()?;
    let values = vec!["1"; limits::UNIT_ROWS_MAX + 1].join(", ");
    Some(text.replace("(...)", &format!("({values})")))
}

#[test]
fn the_page_about_packed_statements_has_their_verdicts() {
    let text = fs::read_to_string(page("packed.md")).unwrap();
    let mut checked = 0;
    for line in text.lines() {
        let Some(cells) = cells(line) else { continue };
        let Some(sql) = statement(&cells[0]).filter(|_| ["packed", "passed through"].contains(&&*cells[1]))
        else {
            continue;
        };
        assert_eq!(explained(&sql, |_| {}).verdict, cells[1], "{sql}");
        checked += 1;
    }
    assert!(checked > 40, "{checked} statements");
}

/// A situation of a table, a statement on it, and the facts about it.
type Situation = (&'static str, &'static str, fn(&mut Facts));

const UPDATE: &str = "update item set stock = 1 where id = $1";

fn table_in(facts: &mut Facts) -> &mut TableFacts {
    facts.table.as_mut().unwrap()
}

fn one_view(facts: &mut Facts, columns: &[&str], definition: &str) {
    table_in(facts).views = vec![view(700, "item_view", columns, definition)];
}

fn refer(facts: &mut Facts, acts_on_delete: bool, deferred: bool) {
    let columns = vec!["id".to_owned()];
    let table = "line".to_owned();
    table_in(facts).referrers.push(Referrer {
        table,
        columns,
        deferred,
        acts_on_delete,
        acts_on_update: false,
    });
}

const SITUATIONS: &[Situation] = &[
    ("does not exist, or the role cannot see it", UPDATE, |facts| facts.table = None),
    ("has no such column", "update item set stok = 1 where id = $1", |_| {}),
    ("a materialized view", "select * from item where id = $1", |facts| table_in(facts).relkind = 'm'),
    ("a foreign table", UPDATE, |facts| table_in(facts).relkind = 'f'),
    ("a temporary table", UPDATE, |facts| table_in(facts).persistence = 't'),
    ("a table of the catalog", UPDATE, |facts| table_in(facts).schema = "pg_catalog".to_owned()),
    ("a sequence, or another relation", "select * from item where id = $1", |facts| {
        table_in(facts).relkind = 'S'
    }),
    ("has rules", UPDATE, |facts| table_in(facts).has_rules = true),
    ("has row-level security that applies to the role", UPDATE, |facts| table_in(facts).row_security = true),
    ("has children by inheritance", UPDATE, |facts| table_in(facts).has_children = true),
    ("a partition", UPDATE, |facts| table_in(facts).is_partition = true),
    ("has too many partitions", UPDATE, |facts| {
        table_in(facts).odd_partition = Some(format!("has more than {} partitions", limits::PARTITIONS_MAX));
    }),
    ("is partitioned by the column that the UPDATE assigns", UPDATE, |facts| {
        table_in(facts).partition_key = vec!["stock".to_owned()];
    }),
    ("is partitioned by a column that a trigger mentions", UPDATE, |facts| {
        table_in(facts).partition_key = vec!["note".to_owned()];
        table_in(facts).triggers.push(trigger("begin new.note := 'x'; return new; end"));
    }),
    ("a view that the gateway cannot look through", UPDATE, |facts| table_in(facts).relkind = 'v'),
    ("a view with a join, DISTINCT or an aggregate", UPDATE, |facts| {
        one_view(facts, &["id", "stock"], " SELECT DISTINCT item.id,\n    item.stock\n   FROM item;");
    }),
    ("a view that calls an unknown function", UPDATE, |facts| {
        one_view(
            facts,
            &["id", "stock"],
            " SELECT item.id,\n    item.stock\n   FROM item\n  WHERE f(item.id);",
        );
    }),
    ("a view, and the statement assigns or compares a computed column", UPDATE, |facts| {
        one_view(facts, &["id", "stock"], " SELECT item.id,\n    (item.stock * 2) AS stock\n   FROM item;");
    }),
    ("has a trigger that does more than change its own row", UPDATE, |facts| {
        table_in(facts).triggers.push(trigger("begin insert into log values (now(), 'x'); return new; end"));
    }),
    ("has a check, an index or a default with an unknown function", UPDATE, |facts| {
        table_in(facts).expressions.push("CHECK (f(stock))".to_owned());
    }),
    ("has a deferrable constraint", UPDATE, |facts| table_in(facts).deferrable = true),
    ("is referenced by a deferred foreign key", "delete from item where id = $1", |facts| {
        refer(facts, false, true)
    }),
    ("is referenced ON DELETE CASCADE or SET NULL", "delete from item where id = $1", |facts| {
        refer(facts, true, false);
    }),
    ("has a column of a composite or range type, or of a type with casts of its own", UPDATE, |facts| {
        table_in(facts).columns[3].type_kind = TypeKind::Other;
    }),
    (
        "has a column of the type `interval` with a field restriction, and the statement writes it",
        UPDATE,
        |facts| {
            table_in(facts).columns[1].interval_fields = true;
        },
    ),
    ("has a default from a sequence with a cache", "insert into item (sku) values ($1)", |facts| {
        table_in(facts).columns[0].default = Some("nextval('item_id_seq'::regclass)".to_owned());
        table_in(facts).columns[0].cached_sequence = true;
    }),
    ("any, in a database with a sequence with a cache", "select nextval('item_id_seq')", |facts| {
        facts.cached_sequences = true;
    }),
    ("any, in a database with a cast of a user between built-in types", UPDATE, |facts| {
        let kind = "cast".to_owned();
        let cast = function("public", "text as integer", 'v');
        facts.functions.push(FunctionFact { kind, language: Some("plpgsql".to_owned()), ..cast });
    }),
    ("is distributed by Citus, and the statement does not show its node", UPDATE, |facts| {
        table_in(facts).distribution = distributed("sku").distribution;
    }),
];

/// Each line of the page about reasons, with the reasons and remedies of the code, and the reasons' variants.
fn renewed(text: &str) -> (String, String) {
    let (mut lines, mut variants) = (Vec::new(), String::new());
    let mut put = |first: &str, found: Explained| {
        variants.push_str(&found.variants);
        variants.push('\n');
        row(&[first, &found.reason, &linked(&found.instead)])
    };
    let mut in_situations = false;
    for line in text.lines() {
        let cells = cells(line);
        in_situations &= cells.is_some();
        let statement =
            cells.as_ref().filter(|cells| cells.len() == 3).and_then(|cells| statement(&cells[0]));
        match (statement, cells) {
            (Some(sql), Some(cells)) => lines.push(put(&cells[0], explained(&sql, |_| {}))),
            (None, Some(_)) if in_situations => {}
            _ => lines.push(line.to_owned()),
        }
        if line == "|---|---|---|"
            && lines.iter().rev().nth(1).is_some_and(|head| head.starts_with("| the table |"))
        {
            in_situations = true;
            lines.extend(SITUATIONS.iter().map(|(name, sql, change)| put(name, explained(sql, *change))));
        }
    }
    (lines.join("\n") + "\n", variants)
}

/// The names of the variants of `Reason`.
fn variants() -> Vec<&'static str> {
    let source = include_str!("../reason.rs").split_once("pub enum Reason {").unwrap().1;
    let lines = source.split("\n}\n").next().unwrap().lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(char::is_uppercase));
    names.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap()).collect()
}

#[test]
fn the_page_about_reasons_has_all_of_them_with_their_remedies() {
    let path = page("reasons.md");
    let text = fs::read_to_string(&path).unwrap();
    let (renewed, found) = renewed(&text);
    if std::env::var_os("HOTROW_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::write(&path, &renewed).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    for (found, expected) in page.lines().zip(renewed.lines()) {
        assert_eq!(found, expected, "{RENEW}");
    }
    assert_eq!(page.lines().count(), renewed.lines().count(), "{RENEW}");
    // Texts and sizes for which a row of the page would be too long.
    for reason in [Reason::TooLarge("long"), Reason::TooLarge("deep"), Reason::ManyStatements] {
        let texts = [Some(reason.to_string()), reason.remedy().map(str::to_owned)];
        assert!(
            texts.iter().flatten().all(|text| page.contains(text)),
            "docs/reasons.md does not say: {texts:?}"
        );
    }
    let words: BTreeSet<&str> = found.split(|c: char| !c.is_alphanumeric()).collect();
    let names = variants();
    assert!(names.len() > 30, "{names:?}");
    let has = |name: &str| words.contains(name) || ["TooLarge", "ManyStatements"].contains(&name);
    let missing: Vec<_> = names.iter().filter(|name| !has(name)).collect();
    assert!(missing.is_empty(), "no row of {} has these reasons: {missing:?}", path.display());
    let remedies = Remedy::ALL.iter().map(|remedy| remedy.text());
    let missing: Vec<_> =
        remedies.filter(|text| !page.contains(&linked(&text.replace('|', "\\|")))).collect();
    assert!(missing.is_empty(), "no row of {} has these remedies: {missing:#?}", path.display());
}

/// Texts of reasons in the code: where one begins, and where it ends.
const TEXTS: [(&str, &str); 5] = [
    ("Unsupported(\"", "\""),
    ("Observing(\"", "\""),
    ("refuse(\"", "\""),
    ("not(\"", "\""),
    ("why = \"", "\";"),
];

fn sources(folder: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, texts);
        } else if path.is_file() && !path.ends_with("remedy.rs") {
            texts.push(fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_page_about_reasons_has_each_text_of_the_code() {
    let page = fs::read_to_string(page("reasons.md")).unwrap().replace('`', "");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" "); // a text can be in two lines
    let mut texts = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/classify"), &mut texts);
    let (mut count, mut missing) = (0, BTreeSet::new());
    for text in &texts {
        for (start, end) in TEXTS {
            let found = text.split(start).skip(1).filter_map(|rest| rest.split(end).next());
            // `why` also says why a statement is packed, with more behind the quote.
            for found in found.filter(|found| !found.contains('"')) {
                count += 1;
                if !page.contains(found) {
                    missing.insert(found);
                }
            }
        }
    }
    assert!(count > 100, "{count} texts");
    assert!(missing.is_empty(), "docs/reasons.md does not have these texts: {missing:#?}");
}
