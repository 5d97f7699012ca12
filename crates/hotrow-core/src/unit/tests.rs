//! Tests the messages that a lane sends for a unit, and the client's reply, for every form in which drivers
//! send statements. Messages are written as their tags. `D` describes a statement, `d` a portal.

use crate::lane::LaneKind;
use bytes::BytesMut;
use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{put_frame, split};

use super::gather::{Gather, Gathered};
use super::*;
use crate::key::{KeyColumn, KeySource, KeySpec, ValueForm};
use crate::normalise::Normaliser;

#[derive(Clone, Debug)]
struct Named;

impl Prepared for Named {
    fn name(&self) -> &[u8] {
        b"s"
    }
}

fn packing(kind: LaneKind, returns_rows: bool) -> Arc<Packing> {
    let column =
        KeyColumn { name: "id".to_owned(), attnum: 1, form: ValueForm::Integer, source: KeySource::Param(0) };
    Arc::new(Packing {
        kind,
        table: "t".to_owned(),
        key: Some(KeySpec { table: 1, columns: vec![column] }),
        rows_per_commit: 128,
        touches_sequence: false,
        returns_rows,
        merging: None,
        lock_statement: None,
        in_key_space: false,
        watch: None,
        why: String::new(),
    })
}

fn write(returns_rows: bool) -> Plan<Named> {
    Plan::Run(Named, packing(LaneKind::Write, returns_rows))
}

/// A client's messages with these tags, for the unnamed statement and portal.
fn messages(tags: &str) -> Gather {
    let mut bytes = BytesMut::new();
    for tag in tags.chars() {
        match tag {
            'P' => frontend::Parse { name: b"", text: b"update t", types: &[] }.put(&mut bytes),
            'B' => frontend::put_bind_text(&mut bytes, b"", [&b"7"[..]].into_iter()),
            'D' => frontend::Named { statement: true, name: b"" }.put(tag::DESCRIBE, &mut bytes),
            'd' => frontend::Named { statement: false, name: b"" }.put(tag::DESCRIBE, &mut bytes),
            'E' => bytes.extend_from_slice(frontend::EXECUTE),
            'C' => frontend::Named { statement: true, name: b"old" }.put(tag::CLOSE, &mut bytes),
            other => panic!("no message {other}"),
        }
    }
    let (mut gather, mut rest) = (Gather::default(), &bytes[..]);
    while let Some(frame) = split(rest, |_| 1 << 20).unwrap() {
        gather.push(frame);
        rest = &rest[frame.bytes.len()..];
    }
    gather
}

fn extended(tags: &str, plan: Plan<Named>) -> Packed<Named> {
    let gather = messages(tags);
    let Gathered::Single(single) = gather.form().unwrap() else { panic!("{tags} is one statement") };
    let raw = [gather.raw(), frontend::SYNC];
    Packed::extended(raw, std::iter::once((&single, plan)), &mut BytesMut::new())
}

fn simple(text: &str, plan: Plan<Named>) -> Packed<Named> {
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(text);
    Packed::simple([b"raw", b""], vec![(plan, 0..usize::MAX)], &shape, &mut BytesMut::new())
}

/// The messages that a lane sends for the unit's only statement.
fn sent(unit: &Packed<Named>) -> String {
    tags(unit.frames(unit.runs().next().unwrap()))
}

fn tags(mut frames: &[u8]) -> String {
    let mut tags = String::new();
    while let Some(frame) = split(frames, |_| 1 << 20).unwrap() {
        let portal = frame.tag == tag::DESCRIBE && frame.body().first() == Some(&b'P');
        tags.push(if portal { 'd' } else { char::from(frame.tag) });
        frames = &frames[frame.bytes.len()..];
    }
    tags
}

/// Server messages with these tags.
fn from_lane(tags: &str) -> BytesMut {
    let mut bytes = BytesMut::new();
    tags.bytes().for_each(|tag| put_frame(&mut bytes, tag, |out| out.extend_from_slice(b"\0")));
    bytes
}

fn told(unit: &Packed<Named>, lane: &[&str]) -> String {
    let frames: Vec<_> = lane.iter().map(|tags| from_lane(tags)).collect();
    let mut out = BytesMut::new();
    unit.put_answer(frames.iter().map(|frames| &frames[..]), &[], &mut out);
    tags(&out)
}

#[test]
fn a_lane_gets_no_parse_and_the_client_gets_the_replies_it_requested() {
    for (client, returns_rows, lane, answer, expected) in [
        ("BE", false, "BE", "2C", "2CZ"),
        ("BE", true, "BE", "2DC", "2DCZ"),
        // The gateway does not ask the server whether a statement without rows has columns.
        ("PBdE", false, "BE", "2C", "12nCZ"),
        ("PBdE", true, "BdE", "2TDC", "12TDCZ"),
        ("PDBE", true, "DBE", "tT2DC", "1tT2DCZ"),
        ("PBDE", false, "BDE", "2tnC", "12tnCZ"),
        ("CCPBEC", false, "BE", "2C", "3312C3Z"),
        // A notice before BindComplete keeps its position.
        ("PBdE", false, "BE", "N2NC", "1N2nNCZ"),
    ] {
        let unit = extended(client, write(returns_rows));
        assert_eq!(sent(&unit), lane, "{client}");
        assert_eq!(told(&unit, &[answer]), expected, "{client}");
        assert!(unit.raw().ends_with(frontend::SYNC), "{client}");
    }
}

#[test]
fn a_simple_query_is_sent_as_an_extended_query_and_answered_as_a_simple_one() {
    let unit = simple("update t set n = 1 where id = 7", write(false));
    assert_eq!((sent(&unit), told(&unit, &["2C"])), ("BE".to_owned(), "CZ".to_owned()));
    let unit = simple("update t set n = 1 where id = 7 returning n", write(true));
    assert_eq!((sent(&unit), told(&unit, &["N2TDC"])), ("BdE".to_owned(), "NTDCZ".to_owned()));
    assert_eq!(unit.raw(), b"raw");
}

#[test]
fn begin_and_commit_are_answered_by_the_gateway() {
    let mut normaliser = Normaliser::new();
    let mut out = BytesMut::new();
    let mut builder = UnitBuilder::new(&mut out);
    builder.simple(Plan::Boundary(Named, Boundary::Begin("BEGIN")), &normaliser.run("begin"), 0..0);
    builder.ready();
    builder.simple(write(false), &normaliser.run("update t set n = 1 where id = 7"), 0..2);
    builder.ready();
    let gather = messages("PBdE");
    let Gathered::Single(single) = gather.form().unwrap() else { panic!() };
    builder.extended(write(true), &single);
    builder.ready();
    builder.simple(Plan::Boundary(Named, Boundary::Commit), &normaliser.run("commit"), 0..0);
    builder.ready();
    assert_eq!(builder.statements(), 4);
    let unit = builder.finish([b"", b""]);
    assert_eq!((unit.statement_count(), unit.readies()), (2, 4));
    assert!(!unit.may_stay_open(), "its COMMIT is a message of its own");
    assert_eq!(told(&unit, &["2C", "2TDC"]), "CZCZ12TDCZCZ");
    let mut refusals = BytesMut::new();
    put_refusals(&Problem::error("57014", "cancelled", ""), unit.readies(), &mut refusals);
    assert_eq!(tags(&refusals), "EZEZEZEZ");
}

#[test]
fn messages_of_the_commit_precede_the_last_ready_for_query() {
    let unit = extended("BE", write(false));
    let mut out = BytesMut::new();
    unit.put_answer(std::iter::once(&from_lane("2C")[..]), &from_lane("N"), &mut out);
    assert_eq!(tags(&out), "2CNZ");
}

#[test]
fn a_unit_of_several_statements_claims_the_rows_that_it_writes() {
    let gather = messages("PBEPBEPBE");
    let Gathered::Several(statements) = gather.form().unwrap() else { panic!() };
    let plans = [write(false), Plan::Run(Named, packing(LaneKind::Read, true)), write(false)];
    let unit = Packed::extended([b"", b""], statements.iter().zip(plans), &mut BytesMut::new());
    assert_eq!(unit.kind(), LaneKind::Write);
    assert_eq!(unit.claims.iter().map(|claim| claim.statement).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(unit.key, unit.claims.iter().map(|claim| claim.key).min());
    assert_eq!(unit.keys().count(), 2);
}

#[test]
fn one_statement_contends_for_the_row_of_its_parameter() {
    let [seven, also] = ["BE", "PBdE"].map(|tags| extended(tags, write(false)));
    assert!(seven.key.is_some() && seven.key == also.key && seven.claims.is_empty());
    // The parameter is the first literal of a simple query. The rest of the text does not matter.
    let [same, other] =
        ["7", "8"].map(|id| simple(&format!("update t set id = {id} where n = 1"), write(false)));
    assert!(same.key == seven.key && other.key != seven.key);
    let read = extended("BE", Plan::Run(Named, packing(LaneKind::Read, true)));
    assert_eq!((read.kind(), read.readies()), (LaneKind::Read, 1));
}
