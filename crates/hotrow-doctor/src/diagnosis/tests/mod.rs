//! The diagnosis of recordings: one that was made from a server, and small ones that are written here.

mod rows;
mod situations;
mod untrusted;
mod world;

use std::collections::BTreeSet;

use crate::counters::Slot;
use crate::diagnosis::diagnose;
use crate::diagnosis::findings::Situation;
use crate::recording::Recording;
use crate::report::{Report, html::html, text::text};

/// Made by the situation `a_hot_row_by_primary_key` on PostgreSQL 15.
const HOT_ROW: &str = include_str!("hot_row.json");

#[test]
fn a_recorded_hot_row_is_named_with_its_key() {
    let recording: Recording = serde_json::from_str(HOT_ROW).unwrap();
    let diagnosis = diagnose(&recording, true);
    assert_eq!(diagnosis.findings[0].kind, Situation::HotRow);
    let row = &diagnosis.rows.rows[0];
    assert_eq!(
        (row.table.as_str(), row.key.clone()),
        ("item", vec![("id".to_owned(), Some("7".to_owned()))])
    );
    assert!(diagnosis.findings[0].text.contains("item (id = 7)"), "{}", diagnosis.findings[0].text);
    assert_eq!(diagnosis.statements.packable, 1.0);
}

#[test]
fn a_report_has_values_only_if_they_are_asked_for() {
    let recording: Recording = serde_json::from_str(HOT_ROW).unwrap();
    let forms = |show_keys| {
        let report = Report::new(&recording, &diagnose(&recording, show_keys), show_keys);
        [text(&report), html(&report), serde_json::to_string(&report).unwrap()]
    };
    for (with, without) in forms(true).iter().zip(&forms(false)) {
        let shows = |form: &str| form.contains("id = 7") || form.contains(r#""id":"7""#);
        assert!(shows(with) && !shows(without), "{with}\n{without}");
    }
}

#[test]
fn a_reason_about_a_setting_is_shown_as_it_is() {
    let mut recording: Recording = serde_json::from_str(HOT_ROW).unwrap();
    let reason = "SET ROLE changes or reads the session";
    recording
        .statements
        .iter_mut()
        .flat_map(|it| &mut it.verdict)
        .for_each(|it| it.reason = reason.to_owned());
    let report = Report::new(&recording, &diagnose(&recording, false), false);
    assert!(text(&report).contains(reason), "{}", text(&report));
}

/// The fields of the objects in the JSON. docs/doctor.md describes each of them.
const FIELDS: [(&str, &[&str]); 11] = [
    ("server", &["version", "database"]),
    ("findings", &["kind", "severity", "text", "next"]),
    ("sessions", &["total", "active", "by_wait", "over_time", "by_wait_over_time"]),
    ("hot_rows", &["table", "key", "page", "waiting", "share"]),
    ("lock_tree", &["depth", "pid", "does", "statement"]),
    (
        "statements",
        &["text", "calls", "counted", "active", "interactive", "waits", "verdict", "reason", "remedy"],
    ),
    (
        "throughput",
        &[
            "commits",
            "writes",
            "flushes",
            "flush_ms",
            "flushes_per_write",
            "wal_bytes",
            "wal_bytes_per_write",
            "statements",
        ],
    ),
    ("lock_waits", &["kind", "waits", "wait_ms", "beyond_fast_path"]),
    ("replication", &["kind", "name", "state", "behind_bytes"]),
    (
        "workload",
        &[
            "sessions",
            "busy",
            "waiting",
            "transactions",
            "writing",
            "changes",
            "hot",
            "batch_max",
            "packable",
            "interactive",
            "client_us",
            "pause_us",
            "flush_us",
            "execution_us",
            "probe_us",
            "cores",
            "busy_cores",
            "core_wait_us",
            "core_queue",
            "local_clients",
        ],
    ),
    ("prediction", &["low", "high", "today", "assumptions"]),
];

/// A recording whose report has something in each list.
fn full_report() -> Report {
    let mut recording: Recording = serde_json::from_str(HOT_ROW).unwrap();
    recording.after.slots.push(Slot { name: "away".to_owned(), ..Slot::default() });
    recording.after.locks = serde_json::json!([{"locktype": "tuple", "waits": 2, "wait_time": 3000.0}]);
    Report::new(&recording, &diagnose(&recording, true), true)
}

#[test]
fn the_json_has_exactly_the_documented_fields_at_every_level() {
    let json = serde_json::to_value(full_report()).unwrap();
    assert_eq!((&json["version"], &json["hot_rows"][0]["key"]["id"]), (&1.into(), &"7".into()));
    assert!(json.pointer("/sessions/by_wait/Lock:transactionid").is_some(), "{json:#}");
    let documented = include_str!("../../../../../docs/doctor.md").split_once("## The JSON").unwrap().1;
    let (report, workload) = documented.split_once("The fields of `workload`").unwrap();
    let row = |name: &str| {
        let has =
            |line: &&str| line.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{name}`")));
        report.lines().find(has).unwrap_or_else(|| panic!("docs/doctor.md does not describe {name}"))
    };
    let of_object = |value: &serde_json::Value| -> BTreeSet<String> {
        let object = value.as_array().map_or(Some(value), |list| list.first());
        object.and_then(|it| it.as_object()).map(|it| it.keys().cloned().collect()).unwrap_or_default()
    };
    for field in of_object(&json) {
        row(&field);
        let is_object = json[&field]
            .as_array()
            .map_or(json[&field].is_object(), |list| list.first().is_none_or(serde_json::Value::is_object));
        assert_eq!(is_object, FIELDS.iter().any(|(name, _)| *name == field), "{field} is an object");
    }
    for (name, fields) in FIELDS {
        let fields: BTreeSet<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(of_object(&json[name]), fields, "{name}");
        for field in &fields {
            let description = if name == "workload" { workload } else { row(name) };
            let is_described = description.contains(&format!("`{field}`"));
            assert!(is_described, "docs/doctor.md does not describe {field} of {name}");
        }
    }
}

#[test]
fn average_sessions_by_wait_event_add_up_to_those_by_class_at_each_moment() {
    let report = full_report();
    let (classes, waits) = (&report.sessions.over_time, &report.sessions.by_wait_over_time);
    assert!(!classes.is_empty() && classes.len() == waits.len(), "{classes:?} {waits:?}");
    for (class, wait) in classes.iter().zip(waits) {
        let (by_class, by_wait) = (class.values().sum::<f64>(), wait.values().sum::<f64>());
        assert!((by_class - by_wait).abs() < 0.01, "{class:?} {wait:?}");
    }
    assert!(waits.iter().all(|point| point.contains_key("Lock:transactionid")), "{waits:?}");
}

#[test]
fn the_page_loads_nothing_and_runs_nothing() {
    let page = html(&full_report());
    let policy = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"#;
    let before = page.split_once(policy).expect("the page has the strict policy").0;
    assert!(!before.contains("<style") && !before.contains("<link"), "the policy comes first: {before}");
    let names =
        page.split('<').skip(1).map(|tag| tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap());
    for tag in names {
        let loads =
            ["script", "link", "img", "image", "iframe", "object", "embed", "base", "form", "use", "a"];
        assert!(!loads.contains(&tag), "<{tag}> in the page");
    }
    for part in ["src=", "href", "url(", "@import", "onload", "onclick", "http://", "https://"] {
        let rest = page.replace(r#"xmlns="http://www.w3.org/2000/svg""#, "");
        assert!(!rest.contains(part), "{part} in the page");
    }
}
