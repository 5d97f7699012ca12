//! Tests of statements on views: as which statement on the table they are judged, and which views are passed through.

use super::*;
use crate::classify::judge::decision::names_to_look_up;

/// `v`: `inv` with other names, an order of its own, a computed column and a condition.
const DEFINITION: &str = " SELECT inv.sku AS article,
    inv.id AS no,
    inv.stock,
    (inv.stock * 2) AS twice
   FROM inv
  WHERE (inv.sold < 5);";

type Change = fn(&mut View);

pub(super) fn view(oid: u32, name: &str, columns: &[&str], definition: &str) -> View {
    View {
        oid,
        schema: "shop".to_owned(),
        name: name.to_owned(),
        persistence: 'p',
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        definition: definition.to_owned(),
        has_rules: false,
        has_triggers: false,
        has_defaults: false,
        security_barrier: false,
    }
}

fn v() -> View {
    view(500, "v", &["article", "no", "stock", "twice"], DEFINITION)
}

/// `w`: `v` with other names again.
fn w() -> View {
    view(501, "w", &["amount", "item"], " SELECT v.stock AS amount,\n    v.no AS item\n   FROM shop.v;")
}

fn decision(sql: &str, change: impl FnOnce(&mut Facts)) -> Decision {
    let Analysis::Candidate(candidate) = analyse(sql) else { panic!("{sql}") };
    let mut below = inv();
    below.views = match candidate.table.as_ref().unwrap().name.as_str() {
        "v" => vec![v()],
        "w" => vec![w(), v()],
        other => panic!("{other}"),
    };
    let mut facts = Facts { table: Some(below), ..Facts::default() };
    change(&mut facts);
    decide(&candidate, &facts, &[])
}

fn through(sql: &str, change: impl FnOnce(&mut TableFacts)) -> String {
    describe(&decision(sql, |facts| change(facts.table.as_mut().unwrap())))
}

#[test]
fn statements_on_simple_views_have_the_key_of_the_table() {
    for (sql, verdict) in [
        ("update v set stock = stock - 1 where no = $1", "write id=$1"),
        ("update v set stock = stock - 1 where article = $1 and no > 2 returning *", "write sku=$1, rows"),
        ("update v set stock = twice where no = $1", "write id=$1"),
        ("delete from v where no in (1, 2)", "write id=(1|2)"),
        ("select * from v where no = $1", "read id=$1, rows"),
        ("select twice from v where v.article = 'x'", "read sku=x, rows"),
        ("insert into v values ('x', $1)", "write id=$1"),
        ("insert into v (stock, no) values (1, $2)", "write id=$2"),
        ("insert into v default values", "write no key"),
        ("insert into v (no) values ($1) on conflict (article) do nothing", "write id=$1"),
        (
            "insert into v values ('x', 1) on conflict (article) do update set stock = excluded.stock",
            "write sku=x",
        ),
        ("update w set amount = amount - 1 where item = $1", "write id=$1"),
        ("insert into w values (1, $1)", "write id=$1"),
        ("select * from w where item = any($1)", "read id=any $1, rows"),
    ] {
        assert_eq!(through(sql, |_| {}), verdict, "{sql}");
    }
    for (sql, why) in [
        ("update v set twice = 1 where no = $1", "column twice is computed by a view"),
        ("insert into v values ('x', 1, 2, 3)", "column twice is computed by a view"),
        ("update v set stock = 1 where twice = $1", "no unique index of inv"),
        ("update v set stock = 1 where id = $1", "id is not a column"),
        ("update v set sold = 1 where no = $1", "sold is not a column"),
        ("update w set amount = 1 where no = $1", "no is not a column"),
        ("update w set amount = 1 where amount = 2", "no unique index of inv"),
    ] {
        assert!(through(sql, |_| {}).contains(why), "{sql}: {}", through(sql, |_| {}));
    }
}

#[test]
fn code_of_the_table_runs_for_statements_on_its_views() {
    let generated = |table: &mut TableFacts| table.columns[4].default = Some("my_note()".to_owned());
    assert!(through("insert into v (no) values (1)", generated).contains("my_note"));
    assert_eq!(through("update v set stock = 1 where no = 1", generated), "write id=1");
    let cascades = |table: &mut TableFacts| {
        table.referrers.push(Referrer {
            table: "orders".to_owned(),
            columns: vec!["id".to_owned()],
            deferred: false,
            acts_on_delete: true,
            acts_on_update: true,
        });
    };
    assert!(through("delete from w where item = 1", cascades).contains("foreign keys of orders"));
    assert!(through("update v set no = 2 where no = 1", cascades).contains("foreign keys of orders"));
    let own = |table: &mut TableFacts| table.row_security = true;
    assert!(through("select stock from v where no = 1", own).ends_with("inv is under row security"));
}

#[test]
fn views_that_are_not_simple_are_passed_through() {
    const ALL: &[&str] = &[
        "update v set stock = 1 where no = 1",
        "delete from v where no = 1",
        "select stock from v where no = 1",
        "insert into v (no) values (1)",
    ];
    let changes: &[(Change, &str)] = &[
        (|view| view.has_rules = true, "v is a view that is rewritten by rules"),
        (|view| view.has_triggers = true, "v is a view with triggers of its own"),
        (|view| view.persistence = 't', "v is a view that is temporary"),
        (|view| view.definition = DEFINITION.replace("FROM inv", "FROM inv, inv x"), "a join"),
        (|view| view.definition = DEFINITION.replace("SELECT", "SELECT DISTINCT"), "DISTINCT"),
        (|view| view.definition = DEFINITION.replace(';', " LIMIT 1"), "that is not simple"),
        (|view| view.definition = DEFINITION.replace(';', " ORDER BY id"), "that is not simple"),
        (|view| view.definition = DEFINITION.replace(';', " GROUP BY sku"), "GROUP BY"),
        (|view| view.definition = DEFINITION.replace("sold <", "(select 1) <"), "a subquery"),
        (|view| view.definition = DEFINITION.replace("inv.stock * 2", "f(inv.stock)"), "that calls f"),
        (|view| view.definition = DEFINITION.replace("inv.stock * 2", "max(inv.stock)"), "that calls max"),
        (|view| view.definition = DEFINITION.replace("sold <", "nextval('s') <"), "nextval"),
        (|view| view.definition = DEFINITION.replace("sold <", "pg_backend_pid() <"), "pg_backend_pid"),
    ];
    for (change, why) in changes {
        for sql in ALL {
            let verdict = through(sql, |table| change(&mut table.views[0]));
            assert!(verdict.starts_with("pass: ") && verdict.contains(why), "{sql}: {verdict}, not {why}");
        }
        let verdict = through("update w set amount = 1 where item = 1", |table| change(&mut table.views[1]));
        assert!(verdict.starts_with("pass: "), "a view below: {verdict}");
    }
    let operator = |facts: &mut Facts| {
        facts.functions.push(FunctionFact {
            schema: "public".to_owned(),
            name: "<".to_owned(),
            kind: "operator".to_owned(),
            visible: false,
            volatility: Some('v'),
            special: false,
            language: Some("sql".to_owned()),
            source: Some("select f($1)".to_owned()),
            extension: None,
            version: String::new(),
        });
    };
    assert!(describe(&decision(ALL[2], operator)).contains("v is a view that calls <"));
    let Analysis::Candidate(candidate) = analyse(ALL[2]) else { panic!() };
    let table = TableFacts { views: vec![v()], ..inv() };
    assert!(names_to_look_up(&candidate, Some(&table)).contains(&"<".to_owned()), "it is looked up");
}

#[test]
fn defaults_of_a_view_count_only_if_they_are_used() {
    let with_defaults = |table: &mut TableFacts| table.views[0].has_defaults = true;
    for (sql, packed) in [
        ("insert into w (item) values (1)", false),
        ("insert into w values (default, 1)", false),
        ("insert into w values (1, 1)", true),
        ("update w set amount = default where item = 1", false),
        ("update w set amount = 1 where item = 1", true),
    ] {
        let verdict = through(sql, with_defaults);
        assert_eq!(verdict.starts_with("write"), packed, "{sql}: {verdict}");
    }
}

#[test]
fn a_statement_on_a_view_relies_on_the_view_and_the_table() {
    let sql = "update w set amount = amount - 1 where item = $1";
    let Decision::Packed(packing) = decision(sql, |_| {}) else { panic!() };
    let watch = packing.watch.unwrap();
    assert_eq!((watch.name.as_str(), watch.oid, watch.parts), ("\"w\"", 501, vec![500, 100]));
    assert_eq!((packing.table.as_str(), packing.key.unwrap().table), ("public.inv", 100));
    let lock = packing.lock_statement.unwrap().text;
    assert_eq!(lock, r#"select from "shop"."w" where "item" = $1 for no key update"#);
    let barrier = |facts: &mut Facts| facts.table.as_mut().unwrap().views[1].security_barrier = true;
    let Decision::Packed(packing) = decision(sql, barrier) else { panic!() };
    assert_eq!(packing.lock_statement, None, "it could lock other rows");
}
