//! Names and texts that users of the server choose, in the report and in the commands that it suggests.

use super::world::{TABLE, crowd, recording, seen, session, transaction, waiting};
use crate::counters::{Counters, Prepared, Slot, Standby, TableCounters};
use crate::diagnosis::diagnose;
use crate::recording::{Recording, Statement};
use crate::report::{Report, text::text};
use crate::sample::{Sample, Session};

/// It sets a terminal's title, clears its screen, and begins a line that looks like the doctor's.
const HOSTILE: &str =
    "x\u{1b}]0;title\u{7}\u{1b}[2J\r\nThe gateway would\u{85}\u{9b}31m\u{2028}\u{202e}\u{7f}\ty";

fn with_hostile_names() -> Recording {
    let named = |session: Session| Session {
        database: Some(HOSTILE.into()),
        wait: session.wait_type.as_ref().map(|_| HOSTILE.into()),
        ..session
    };
    let mut recording = recording((0..4).map(|_| {
        let mut sample = crowd(session(1, "active"), 107, "ExclusiveLock");
        sample.rows = vec![seen(107, "900", 4, HOSTILE, HOSTILE)];
        sample.sessions = std::mem::take(&mut sample.sessions).into_iter().map(named).collect();
        sample
    }));
    let table = &mut recording.tables[0];
    table.schema = HOSTILE.into();
    table.name = HOSTILE.into();
    for key in &mut table.keys {
        key.columns = vec![HOSTILE.into()];
    }
    for text in [
        &mut recording.abilities.role,
        &mut recording.abilities.database,
        &mut recording.abilities.version_text,
    ] {
        HOSTILE.clone_into(text);
    }
    recording.unpackable = Some(HOSTILE.into());
    recording.statements =
        vec![Statement { shape: format!("update \"{HOSTILE}\" set n = 1"), ..Statement::default() }];
    recording.statements[0].verdict = Some(crate::recording::RecordedVerdict {
        name: HOSTILE.into(),
        reason: HOSTILE.into(),
        ..Default::default()
    });
    let held_bytes = Some(2e9);
    recording.after = Counters {
        slots: vec![Slot { name: HOSTILE.into(), kind: HOSTILE.into(), held_bytes, ..Slot::default() }],
        standbys: vec![Standby { name: HOSTILE.into(), state: Some(HOSTILE.into()), ..Standby::default() }],
        ..Counters::default()
    };
    recording
}

#[test]
fn no_name_leaves_its_line_of_the_report_or_controls_the_terminal() {
    let plain = with_hostile_names();
    for readable in [true, false] {
        let mut recording = plain.clone();
        recording.tables[0].readable = readable;
        let report = Report::new(&recording, &diagnose(&recording, true), true);
        let shown = text(&report);
        assert!(shown.contains(r"x\u{1b}]0;title\u{7}\u{1b}[2J\r\n"), "names are shown: {shown}");
        let control =
            |character: char| (character.is_control() && character != '\n') || character > '\u{2000}';
        assert!(!shown.contains(control), "{shown:?}");
        assert!(shown.lines().filter(|line| line.starts_with("The gateway would")).count() <= 2, "{shown}");
    }
}

#[test]
fn suggested_commands_quote_names() {
    let attack = r#"a" to bob; alter role carol superuser; --"#;
    let quoted = r#""a"" to bob; alter role carol superuser; --""#;
    let next = |recording: &Recording| -> Vec<String> {
        diagnose(recording, true).findings.into_iter().map(|finding| finding.next).collect()
    };
    let mut crowded = recording((0..3).map(|_| crowd(session(1, "active"), 107, "ExclusiveLock")));
    crowded.tables[0].readable = false;
    crowded.tables[0].name = attack.into();
    crowded.abilities.role = attack.into();
    let grant = format!(r#"grant select on "public".{quoted} to {quoted}"#);
    assert!(next(&crowded).iter().any(|next| next.starts_with(&grant)), "{:?}", next(&crowded));

    let hidden = |_| Sample { sessions: vec![Session { pid: 1, ..Session::default() }], ..Sample::default() };
    let mut blind = recording((0..3).map(hidden));
    blind.abilities.sees_sessions = false;
    blind.abilities.role = attack.into();
    assert_eq!(next(&blind)[0], format!("grant pg_monitor to {quoted}"));

    let stuck = |_| Sample {
        sessions: vec![waiting(2, "transactionid")],
        locks: vec![transaction(None, "900", true), transaction(Some(2), "900", false)],
        ..Sample::default()
    };
    let mut prepared = recording((0..4).map(stuck));
    let gid = r"\'; drop table t; --".to_owned();
    prepared.after.prepared = vec![Prepared { gid, transaction: "900".into(), age_s: 60.0 }];
    let quoted = r"E'\\''; drop table t; --'";
    assert_eq!(next(&prepared)[0], format!("commit prepared {quoted}, or rollback prepared {quoted}"));

    let mut scanned =
        recording((0..3).map(|_| Sample {
            sessions: vec![session(1, "active"), session(2, "active")],
            ..Sample::default()
        }));
    let table = |scans, scanned| TableCounters {
        oid: TABLE,
        schema: attack.into(),
        name: attack.into(),
        scans: Some(scans),
        scanned: Some(scanned),
        ..TableCounters::default()
    };
    scanned.before = Counters { at_us: 0, tables: vec![table(0, 0)], ..Counters::default() };
    scanned.after =
        Counters { at_us: 1_000_000, tables: vec![table(100, 10_000_000)], ..Counters::default() };
    let quoted = r#""a"" to bob; alter role carol superuser; --""#;
    let index = format!("create index concurrently on {quoted}.{quoted} (the columns");
    assert!(next(&scanned)[0].starts_with(&index), "{:?}", next(&scanned));
}
