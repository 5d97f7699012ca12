//! Tests how facts about the table change the verdict: kind, triggers, expressions, foreign keys. Other names
//! are tested in `namesakes`.

use super::*;

pub(super) const UPDATE: &str = "update inv set stock = stock - 1 where id = $1";
pub(super) const INSERT: &str = "insert into inv (id, stock) values ($1, $2)";
pub(super) const SELECT: &str = "select stock from inv where id = $1";
const DELETE: &str = "delete from inv where id = $1";

/// The verdict after a change of the table.
fn with_table(sql: &str, change: impl FnOnce(&mut TableFacts)) -> String {
    verdict_with(sql, |facts| change(facts.table.as_mut().unwrap()))
}

pub(super) fn trigger(source: &str) -> Trigger {
    Trigger {
        name: "touch".to_owned(),
        language: "plpgsql".to_owned(),
        source: source.to_owned(),
        special: false,
        condition: None,
        on_insert: true,
        on_update: true,
        on_delete: false,
    }
}

#[test]
fn only_ordinary_tables_are_packed() {
    for sql in [UPDATE, INSERT, SELECT, DELETE] {
        assert!(with_table(sql, |table| table.relkind = 'v').ends_with("inv is a view"), "{sql}");
        assert!(with_table(sql, |table| table.relkind = 'f').ends_with("a foreign table"), "{sql}");
        assert!(with_table(sql, |table| table.persistence = 't').ends_with("a temporary table"), "{sql}");
        assert!(with_table(sql, |table| table.has_rules = true).ends_with("rewritten by rules"), "{sql}");
        assert!(with_table(sql, |table| table.row_security = true).ends_with("under row security"), "{sql}");
        assert!(
            with_table(sql, |table| table.has_children = true).ends_with("inherited by other tables"),
            "{sql}"
        );
        assert!(with_table(sql, |table| table.is_partition = true).ends_with("a partition"), "{sql}");
        assert!(
            with_table(sql, |table| table.schema = "pg_catalog".into()).ends_with("the catalog"),
            "{sql}"
        );
        assert!(
            !with_table(sql, |table| table.persistence = 'u').starts_with("pass"),
            "unlogged is fine: {sql}"
        );
    }
}

#[test]
fn partitioned_tables_are_packed_unless_a_row_may_move() {
    let partitioned = |table: &mut TableFacts| {
        (table.relkind, table.has_children) = ('p', true);
        table.partitions = vec![101, 102];
        table.partition_key = vec!["id".to_owned(), "sold".to_owned()];
    };
    assert_eq!(with_table(UPDATE, partitioned), "write id=$1");
    assert_eq!(with_table(DELETE, partitioned), "write id=$1");
    assert_eq!(with_table(INSERT, partitioned), "write id=$1");
    assert_eq!(with_table(SELECT, partitioned), "read id=$1, rows");
    for sql in [
        "update inv set sold = 2 where id = $1",
        "update inv set (stock, sold) = (1, default) where id = $1",
        "insert into inv (id) values (1) on conflict (id) do update set sold = 2",
    ] {
        assert!(with_table(sql, partitioned).contains("column sold decides in which partition"), "{sql}");
    }
    let odd = |table: &mut TableFacts| {
        partitioned(table);
        table.odd_partition = Some("has the partition x, which is not an ordinary table".to_owned());
    };
    for sql in [UPDATE, DELETE, INSERT, SELECT] {
        assert!(
            with_table(sql, odd).ends_with("inv has the partition x, which is not an ordinary table"),
            "{sql}"
        );
    }
    for (source, packed) in [
        ("begin new.note := now(); return new; end", true),
        ("begin new.sold := 1; return new; end", false),
        ("begin new.\"sold\" := 1; return new; end", false),
    ] {
        let verdict = with_table(UPDATE, |table| {
            partitioned(table);
            table.triggers.push(trigger(source));
        });
        assert_eq!(verdict == "write id=$1", packed, "{source}: {verdict}");
        assert!(packed || verdict.contains("uses sold, which is in the partition key"), "{verdict}");
        let inserted = with_table(INSERT, |table| {
            partitioned(table);
            table.triggers.push(trigger(source));
        });
        assert_eq!(inserted, "write id=$1", "an INSERT moves no row");
    }
}

#[test]
fn deferrable_constraints_prevent_packing_of_writes_only() {
    assert!(with_table(UPDATE, |table| table.deferrable = true).contains("deferrable"));
    assert_eq!(with_table(SELECT, |table| table.deferrable = true), "read id=$1, rows");
}

/// Django makes every foreign key initially deferred. Only statements that touch one must be passed through.
#[test]
fn deferred_foreign_keys_prevent_packing_of_statements_that_touch_them() {
    let own = |table: &mut TableFacts| table.deferred_columns.push("sold".to_owned());
    assert_eq!(with_table(UPDATE, own), "write id=$1");
    assert_eq!(with_table(DELETE, own), "write id=$1");
    assert_eq!(with_table(INSERT, own), "write id=$1", "the column stays null");
    for sql in [
        "update inv set sold = 2 where id = $1",
        "insert into inv (id, sold) values (1, 2)",
        "insert into inv values (1, 2, 3)",
        "insert into inv (id) values (1) on conflict (id) do update set sold = 2",
    ] {
        assert!(with_table(sql, own).contains("a constraint of inv is deferrable"), "{sql}");
    }
    let of_other = |table: &mut TableFacts| {
        let (columns, table_name) = (vec!["id".to_owned()], "orders".to_owned());
        table.referrers.push(Referrer {
            table: table_name,
            columns,
            deferred: true,
            acts_on_delete: false,
            acts_on_update: false,
        });
    };
    assert_eq!(with_table(UPDATE, of_other), "write id=$1");
    assert_eq!(with_table(INSERT, of_other), "write id=$1");
    assert!(with_table(DELETE, of_other).contains("a constraint of orders is deferrable"));
    assert!(with_table("update inv set id = 2 where id = 1", of_other).contains("a constraint of orders"));
}

#[test]
fn columns_of_unknown_types_prevent_packing() {
    for sql in [UPDATE, SELECT] {
        let verdict = with_table(sql, |table| table.columns[4].type_kind = TypeKind::Other);
        assert!(verdict.contains("column note has a type"), "{sql}");
        let verdict = with_table(sql, |table| table.columns[4].type_kind = TypeKind::Harmless);
        assert!(!verdict.starts_with("pass"), "{sql}");
    }
}

/// For such a column PostgreSQL reads `'5'` as five minutes if it is a constant, and as five seconds if it is
/// a parameter.
#[test]
fn intervals_with_a_field_restriction_are_not_written_in_lanes() {
    let with_fields = |table: &mut TableFacts| table.columns[4].interval_fields = true;
    for sql in [
        "update inv set note = $1 where id = $2",
        "insert into inv (id, note) values ($1, $2)",
        "insert into inv values ($1, 1, 1, 'a', $2)",
        "insert into inv (id, stock) values ($1, 1) on conflict (id) do update set note = $2",
    ] {
        assert!(
            with_table(sql, with_fields).contains("column note is an interval with a field restriction"),
            "{sql}"
        );
    }
    for sql in [UPDATE, INSERT, SELECT, DELETE, "insert into inv (id, note) values ($1, default)"] {
        assert!(!with_table(sql, with_fields).starts_with("pass"), "{sql}");
    }
    assert_eq!(with_table("select id from inv where id = $1 and note = $2", with_fields), "read id=$1, rows");
}

#[test]
fn triggers_must_be_proven_harmless() {
    let harmless = [
        "begin new.note := now(); return new; end",
        "begin\n  if new.stock < 0 and old.stock > 0 then -- insert nothing\n    new.stock = greatest(0, new.stock);\n  \
         end if;\n  return new;\nend;",
        "begin new.note = 'update'; return new; end",
        "declare n numeric(10, 2) := 1; begin n := round(n, 1); new.note := n::varchar(5); return new; end",
        "begin if (new.stock is distinct from old.stock) then new.note := trim(both from (new.note)); end if; return new; end",
        "begin if new.stock is not distinct from (old.stock) then new.note := extract(year from now()); end if; return new; end",
    ];
    for source in harmless {
        let verdict = with_table(UPDATE, |table| table.triggers.push(trigger(source)));
        assert_eq!(verdict, "write id=$1", "{source}");
    }
    for (source, why) in [
        ("begin insert into log values (now(), 'x'); return new; end", "uses insert"),
        ("begin perform f(); return new; end", "uses perform"),
        ("begin EXECUTE 'drop table x'; return new; end", "uses execute"),
        ("begin new.note := (select 1); return new; end", "uses select"),
        ("begin new.note := (table log); return new; end", "uses table"),
        ("begin raise notice 'x'; return new; end", "uses raise"),
        ("begin new.stock := n from spy; return new; end", "reads a relation"),
        ("begin new.stock := distinct from spy; return new; end", "reads a relation"),
        ("begin new.stock := old.stock is distinct from n from spy; return new; end", "reads a relation"),
        ("begin new.stock := trim(both from n) from spy; return new; end", "reads a relation"),
        (
            "begin new.stock := 1; exception when others then new.stock := 2; return new; end",
            "uses exception",
        ),
        ("begin new.note := my_audit(new.id); return new; end", "my_audit is not known"),
        ("begin new.note := pg_backend_pid(); return new; end", "depends on the connection"),
        ("begin new.note := current_setting('app.user'); return new; end", "reads the session's settings"),
        ("begin new.note := new.xmin; return new; end", "uses xmin"),
        ("begin new.note := other.lower('A'); return new; end", "other.lower is not known"),
        ("begin new.note := 'unterminated; end", "cannot be parsed"),
        ("begin new.note := 'a' ||/* ' */ f() /* ' */; return new; end", "cannot be parsed"),
        ("begin new.stock := (new).price; return new; end", "price is not known"),
        ("begin new.stock := (new).zone; return new; end", "zone is not known"),
        ("begin new.stock := \"if\"(1); return new; end", "if is not known"),
        ("begin new.\"select\" := 1; return new; end", "uses select"),
    ] {
        let verdict = with_table(UPDATE, |table| table.triggers.push(trigger(source)));
        assert!(verdict.contains("trigger touch") && verdict.contains(why), "{source}: {verdict}");
    }
    let in_c = |table: &mut TableFacts| table.triggers.push(Trigger { language: "c".into(), ..trigger("") });
    assert!(with_table(UPDATE, in_c).contains("is written in c"));
    let special =
        |table: &mut TableFacts| table.triggers.push(Trigger { special: true, ..trigger("begin end") });
    assert!(with_table(UPDATE, special).contains("its own settings or privileges"));
    let condition = |table: &mut TableFacts| {
        let condition = Some("((old.stock > my_limit(new.id)))".to_owned());
        table.triggers.push(Trigger { condition, ..trigger("begin return new; end") });
    };
    assert!(with_table(UPDATE, condition).contains("my_limit is not known"));
}

#[test]
fn triggers_count_only_if_they_fire() {
    let bad = |table: &mut TableFacts| {
        let on_insert = Trigger { on_update: false, ..trigger("begin perform f(); return new; end") };
        table.triggers.push(on_insert);
    };
    assert_eq!(with_table(UPDATE, bad), "write id=$1");
    assert_eq!(with_table(DELETE, bad), "write id=$1");
    assert_eq!(with_table(SELECT, bad), "read id=$1, rows");
    assert!(with_table(INSERT, bad).contains("trigger touch"));
    let on_update = |table: &mut TableFacts| {
        table.triggers.push(Trigger { on_insert: false, ..trigger("begin perform f(); return new; end") });
    };
    assert_eq!(with_table(INSERT, on_update), "write id=$1");
    let upsert = "insert into inv (id) values (1) on conflict (id) do update set stock = 1";
    assert!(with_table(upsert, on_update).contains("trigger touch"));
}

#[test]
fn expressions_of_the_table_must_be_known() {
    let check = |text: &str| with_table(UPDATE, |table| table.expressions.push(text.to_owned()));
    assert_eq!(check("CHECK ((stock >= 0))"), "write id=$1");
    assert_eq!(check("CHECK (((note)::text = ANY (ARRAY['a'::text, lower('b'::text)])))"), "write id=$1");
    assert!(check("CHECK (is_valid(note))").contains("a check or index of the table calls is_valid"));
    assert!(check("public.slug(note)").contains("public.slug"));
    assert!(check("(note OPERATOR(public.=) 'x')").contains("operator"));
}

#[test]
fn defaults_count_only_if_they_are_used() {
    let default =
        |text: &'static str| move |table: &mut TableFacts| table.columns[4].default = Some(text.to_owned());
    assert!(with_table(INSERT, default("my_note()")).contains("column note of the table calls my_note"));
    assert_eq!(with_table(INSERT, default("upper('x'::text)")), "write id=$1");
    assert_eq!(
        with_table("insert into inv values ($1, 2, 3, 'a', 'b')", default("my_note()")),
        "write id=$1"
    );
    assert_eq!(with_table(UPDATE, default("my_note()")), "write id=$1");
    assert!(with_table("update inv set note = default where id = 1", default("f()")).contains("column note"));
    let generated = |table: &mut TableFacts| {
        table.columns[4].default = Some("f(id)".to_owned());
        table.columns[4].generated = true;
    };
    assert!(with_table(UPDATE, generated).contains("column note"));
    let identity = |table: &mut TableFacts| table.columns[1].identity = true;
    assert_eq!(with_table("insert into inv (id) values (1)", identity), "write id=1, sequence");
    assert_eq!(with_table(INSERT, identity), "write id=$1");
}

#[test]
fn foreign_keys_of_other_tables_with_actions() {
    let referrer = |acts_on_delete, acts_on_update| {
        move |table: &mut TableFacts| {
            table.referrers.push(Referrer {
                table: "orders".to_owned(),
                columns: vec!["id".to_owned()],
                deferred: false,
                acts_on_delete,
                acts_on_update,
            });
        }
    };
    assert!(with_table(DELETE, referrer(true, false)).contains("foreign keys of orders"));
    assert_eq!(with_table(DELETE, referrer(false, true)), "write id=$1");
    assert_eq!(with_table(UPDATE, referrer(true, true)), "write id=$1");
    assert!(with_table("update inv set id = 2 where id = 1", referrer(false, true)).contains("foreign keys"));
    assert_eq!(with_table("update inv set id = 2 where id = 1", referrer(true, false)), "write id=1");
    assert_eq!(with_table(INSERT, referrer(true, true)), "write id=$1");
}

#[test]
fn facts_parse_the_results_of_the_queries() {
    let json = r#"{"oid":16386,"schema":"public","name":"t","relkind":"r","persistence":"p","has_rules":false,
        "row_security":false,"has_children":false,"is_partition":false,"deferrable":false,"deferred_columns":[],
        "columns":[{"name":"id","attnum":1,"type_oid":23,"type_kind":"builtin","avg_width":4,
                    "default":null,"generated":false,"identity":false}],
        "unique_indexes":[{"name":"t_pkey","primary":true,"columns":["id"]}],
        "triggers":[{"name":"g","language":"plpgsql","source":"x","special":false,"condition":null,
                     "on_insert":false,"on_delete":false,"on_update":true}],
        "expressions":["CHECK ((id > 0))"],
        "referrers":[{"table":"o","columns":["id"],"deferred":false,"acts_on_delete":true,"acts_on_update":false}]}"#;
    let table: Option<TableFacts> = serde_json::from_str(json).unwrap();
    assert_eq!(table.unwrap().unique_indexes[0].columns, ["id"]);
    let json = r#"[{"schema":"shop","name":"lower","kind":"function","visible":false,"volatility":"v",
                    "special":false,"extension":null}]"#;
    let functions: Vec<FunctionFact> = serde_json::from_str(json).unwrap();
    assert_eq!(functions[0].volatility, Some('v'));
}
