//! The diagnosis of recordings: one that was made from a server, and small ones that are written here.

mod rows;
mod situations;
mod untrusted;
mod world;

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

/// The contract of docs/doctor.md.
#[test]
fn the_json_has_the_documented_fields() {
    let recording: Recording = serde_json::from_str(HOT_ROW).unwrap();
    let report = Report::new(&recording, &diagnose(&recording, true), true);
    let json: serde_json::Value = serde_json::to_value(report).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["hot_rows"][0]["key"]["id"], "7");
    for field in [
        "/hot_rows/0/table",
        "/hot_rows/0/page",
        "/hot_rows/0/waiting",
        "/hot_rows/0/share",
        "/sessions/by_wait/Lock:transactionid",
        "/statements/0/text",
        "/statements/0/calls",
        "/statements/0/verdict",
        "/statements/0/reason",
        "/statements/0/remedy",
        "/prediction/low",
        "/prediction/high",
        "/prediction/assumptions/0",
        "/findings/0/severity",
        "/findings/0/text",
        "/findings/0/next",
    ] {
        assert!(json.pointer(field).is_some(), "{field} is missing in {json:#}");
    }
    let documented = include_str!("../../../../../docs/doctor.md");
    for field in json.as_object().unwrap().keys() {
        assert!(documented.contains(&format!("`{field}`")), "docs/doctor.md does not describe {field}");
    }
}
