//! Tests the messages that a lane sends for a unit, and the client's reply, for every form in which drivers
//! send statements. Messages are written as their tags. `D` describes a statement, `d` a portal.

use bytes::BytesMut;
use hotrow_lane::lane::{LaneKind, Reads};
use hotrow_wire::backend::Problem;
use hotrow_wire::frontend::{self, tag};
use hotrow_wire::{SqlState, put_frame, split};

use super::gather::{Gather, Gathered};
use super::*;
use crate::classify::Watch;
use crate::distribution::{Distribution, Shard, UnitNode};
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
        is_declared: false,
        takes: None,
        watch: None,
        distribution: None,
        with: Box::default(),
        arrays: Box::default(),
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
            'D' => frontend::ObjectName { statement: true, name: b"" }.put(tag::DESCRIBE, &mut bytes),
            'd' => frontend::ObjectName { statement: false, name: b"" }.put(tag::DESCRIBE, &mut bytes),
            'E' => bytes.extend_from_slice(frontend::EXECUTE),
            'C' => frontend::ObjectName { statement: true, name: b"old" }.put(tag::CLOSE, &mut bytes),
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
    builder.simple(Plan::BlockCommand(Named, BlockCommand::Begin("BEGIN")), &normaliser.run("begin"), 0..0);
    builder.ready();
    builder.simple(write(false), &normaliser.run("update t set n = 1 where id = 7"), 0..2);
    builder.ready();
    let gather = messages("PBdE");
    let Gathered::Single(single) = gather.form().unwrap() else { panic!() };
    builder.extended(write(true), &single);
    builder.ready();
    builder.simple(Plan::BlockCommand(Named, BlockCommand::Commit), &normaliser.run("commit"), 0..0);
    builder.ready();
    assert_eq!(builder.statements(), 4);
    let unit = builder.finish([b"", b""]);
    assert_eq!((unit.claimed.statements, unit.readies()), (2, 4));
    assert!(!unit.may_stay_open(), "its COMMIT is a message of its own");
    assert_eq!(told(&unit, &["2C", "2TDC"]), "CZCZ12TDCZCZ");
    assert_eq!(refused(&unit, SqlState::QueryCanceled), ("CZEZEZCZ".to_owned(), "TEEI".to_owned(), None));
    assert_eq!(
        refused(&unit, SqlState::TransactionResolutionUnknown),
        ("EZEZEZEZ".to_owned(), "IIII".to_owned(), None)
    );
}

/// The tags of the replies to a refused unit, the status in each ReadyForQuery, and the transaction that stays open.
fn refused(unit: &Packed<Named>, code: SqlState) -> (String, String, Option<&'static str>) {
    let mut out = BytesMut::new();
    let open = unit.put_refusal(&Problem::error(code, "refused", ""), &mut out);
    let mut rest = &out[..];
    let mut statuses = String::new();
    while let Ok(Some(frame)) = split(rest, |_| usize::MAX) {
        rest = &rest[frame.bytes.len()..];
        if frame.tag == backend::tag::READY {
            statuses.push(frame.body()[0].into());
        }
    }
    (tags(&out), statuses, open)
}

#[test]
fn a_refused_unit_leaves_the_transaction_that_an_error_of_the_server_would_leave() {
    let unit = extended("BE", write(false));
    assert_eq!(refused(&unit, SqlState::QueryCanceled), ("EZ".to_owned(), "I".to_owned(), None));
    let begin = || Plan::BlockCommand(Named, BlockCommand::Begin("START TRANSACTION"));
    let commit = || Plan::BlockCommand(Named, BlockCommand::Commit);
    let mut normaliser = Normaliser::new();
    let text = normaliser.run("start transaction; update t set n = 1 where id = 7; commit");
    let plans = vec![(begin(), 0..0), (write(false), 0..2), (commit(), 0..0)];
    let unit = Packed::simple([b"", b""], plans, &text, &mut BytesMut::new());
    for code in
        [SqlState::QueryCanceled, SqlState::InsufficientResources, SqlState::TransactionResolutionUnknown]
    {
        let open = Some("START TRANSACTION");
        assert_eq!(refused(&unit, code), ("CEZ".to_owned(), "E".to_owned(), open), "{code:?}");
    }
    let gather = messages("PBdEPBEPBE");
    let Gathered::Several(statements) = gather.form().unwrap() else { panic!() };
    let plans = [begin(), write(false), commit()];
    let unit = Packed::extended([b"", b""], statements.iter().zip(plans), &mut BytesMut::new());
    assert_eq!(refused(&unit, SqlState::QueryCanceled).0, "12nCEZ");
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
    assert_eq!(unit.claimed.claims.iter().map(|claim| claim.statement).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(unit.claimed.key, unit.claimed.claims.iter().map(|claim| claim.key).min());
    assert_eq!(unit.keys().count(), 2);
}

/// A statement on a table with the rows of negative hashes on node 1, and the others on node 2. Node `here` is asked.
fn distributed(kind: LaneKind, here: i32) -> Plan<Named> {
    let shard = |id, least, greatest, node| Shard { id, least, greatest, node };
    let distribution = Distribution {
        method: 'h',
        column: "id".to_owned(),
        type_oid: 20,
        is_deterministic: true,
        probe: None,
        privileges: String::new(),
        local_node: here,
        shards: vec![shard(8, i32::MIN, -1, 1), shard(9, 0, i32::MAX, 2)],
        nodes: Vec::new(),
        has_lanes: true,
    };
    let packing = Packing::clone(&packing(kind, false));
    Plan::Run(Named, Arc::new(Packing { distribution: Some(Arc::new(distribution)), ..packing }))
}

#[test]
fn a_unit_of_a_distributed_table_runs_on_the_node_of_its_rows() {
    let unit = |texts: &[&str], plan: &dyn Fn() -> Plan<Named>| {
        let (mut normaliser, mut out) = (Normaliser::new(), BytesMut::new());
        let mut builder = UnitBuilder::new(&mut out);
        texts.iter().for_each(|text| builder.simple(plan(), &normaliser.run(text), 0..usize::MAX));
        let unit = builder.finish([b"", b""]);
        (unit.node, unit.shards.to_vec(), unit.must_run_alone())
    };
    let (one, seven) = ("update t set id = 1", "update t set id = 7"); // both have a negative hash
    let six = "update t set id = 6"; // its hash is positive
    let written = || distributed(LaneKind::Write, 0);
    assert_eq!(unit(&[seven], &written), (UnitNode::Node(1), vec![8], false));
    assert_eq!(unit(&[six], &written), (UnitNode::Node(2), vec![9], false));
    assert_eq!(unit(&[one, seven], &written), (UnitNode::Node(1), vec![8, 8], false));
    assert_eq!(unit(&[seven, six], &written), (UnitNode::Nowhere, vec![8, 9], true));
    assert_eq!(unit(&["update t set id = 'x'"], &written), (UnitNode::Nowhere, vec![], true), "no number");
    let read = || distributed(LaneKind::Read, 0);
    assert_eq!(unit(&[seven], &read), (UnitNode::Node(1), vec![], false), "a read changes no shard");
    let there = |shards: &[i32]| {
        let Plan::Run(named, packing) = distributed(LaneKind::Read, 0) else { panic!("a plan to run") };
        let mut distribution = Distribution::clone(packing.distribution.as_deref().unwrap());
        distribution.shards.iter_mut().zip(shards).for_each(|(shard, node)| shard.node = *node);
        let mut packing = Packing { distribution: Some(Arc::new(distribution)), ..Packing::clone(&packing) };
        let list = KeySource::OneOf(vec![KeySource::Const("7".to_owned()), KeySource::Const("6".to_owned())]);
        packing.key.as_mut().unwrap().columns[0].source = list;
        packing.returns_rows = true;
        Plan::Run(named, Arc::new(packing))
    };
    let two_shards_of_one_node = || there(&[1, 1]);
    assert_eq!(
        unit(&["select from t"], &two_shards_of_one_node),
        (UnitNode::Nowhere, vec![], true),
        "the description of its rows differs from node to node"
    );
    assert_eq!(extended("BE", two_shards_of_one_node()).node, UnitNode::Node(1), "it is not described");
    assert_eq!(extended("BdE", two_shards_of_one_node()).node, UnitNode::Nowhere);
    let here = || distributed(LaneKind::Write, 1);
    assert_eq!(unit(&[seven], &here), (UnitNode::Own, vec![8], false), "the pool's server has the shard");
}

#[test]
fn one_statement_contends_for_the_row_of_its_parameter() {
    let [seven, also] = ["BE", "PBdE"].map(|tags| extended(tags, write(false)));
    assert!(
        seven.claimed.key.is_some()
            && seven.claimed.key == also.claimed.key
            && seven.claimed.claims.is_empty()
    );
    // The parameter is the first literal of a simple query. The rest of the text does not matter.
    let [same, other] =
        ["7", "8"].map(|id| simple(&format!("update t set id = {id} where n = 1"), write(false)));
    assert!(same.claimed.key == seven.claimed.key && other.claimed.key != seven.claimed.key);
    let read = extended("BE", Plan::Run(Named, packing(LaneKind::Read, true)));
    assert_eq!((read.kind(), read.readies()), (LaneKind::Read, 1));
}

/// A statement whose WITH has another one: `$1` is the row of the other one, `$2` that of the last one.
fn with_two(locks: [bool; 2], is_read: bool) -> Plan<Named> {
    let part = |table: u32, param: u16, locks: bool| {
        let mut part = Packing::clone(&packing(LaneKind::Write, false));
        let lock = || LockStatement { text: format!("lock {table}"), types: vec![23] };
        part.table = format!("t{table}");
        part.lock_statement = locks.then(lock);
        let key = part.key.as_mut().unwrap();
        key.table = table;
        key.columns[0].source = KeySource::Param(param);
        part
    };
    let mut last = part(1, 1, locks[1]);
    if is_read {
        last.key = None; // nothing contends for it
    }
    last.with = Box::new([part(2, 0, locks[0])]);
    Plan::Run(Named, Arc::new(last))
}

#[test]
fn a_statement_with_with_claims_the_rows_of_all_its_parts() {
    const TEXT: &str = "with a as (delete from t2 where id = 8) update t1 set n = n where id = 7";
    let unit = simple(TEXT, with_two([true, false], false));
    let claims: Vec<_> =
        unit.claimed.claims.iter().map(|claim| (claim.key.table, claim.statement, claim.lockable)).collect();
    assert_eq!(claims, [(1, 0, false), (2, 0, true)]);
    assert_eq!((unit.keys().count(), unit.claimed.statements, unit.node), (2, 1, UnitNode::Anywhere));
    assert_eq!(unit.claimed.key, unit.claimed.claims.iter().map(|claim| claim.key).min());
    let named =
        |place: usize| unit.name_of(unit.claimed.claims[place].key).map(|name| (name.table, name.values));
    assert_eq!(named(0), Some(("t1".to_owned(), vec!["7".to_owned()])));
    assert_eq!(named(1), Some(("t2".to_owned(), vec!["8".to_owned()])));
    let (lock, row) = unit.lock(0, unit.claimed.claims[1].key).unwrap();
    assert_eq!((&*lock.text, row.values[0].bytes), ("lock 2", &b"8"[..]));
    assert!(unit.lock(0, unit.claimed.claims[0].key).is_none());

    // The same row in another order of the parts, or with one row of several.
    let only = simple(TEXT, with_two([true, false], true));
    assert_eq!(only.keys().collect::<Vec<_>>(), [unit.claimed.claims[1].key]);
    let (one, other) =
        (simple(TEXT, with_two([false, true], false)), simple("select 8, 9", with_two([true; 2], false)));
    assert_eq!(one.claimed.claims[1].key, other.claimed.claims[1].key);
    assert!(one.claimed.claims[0].key != other.claimed.claims[0].key && one.claimed.claims[0].lockable);
}

fn watched() -> Box<Watch> {
    Box::new(Watch {
        name: "t2".to_owned(),
        oid: 2,
        fingerprint: String::new(),
        trigger_functions: Vec::new(),
        parts: Vec::new(),
    })
}

#[test]
fn the_tables_of_a_statement_with_with_bind_it_to_the_server_of_the_pool() {
    let Plan::Run(named, packing) = with_two([true; 2], true) else { panic!("a plan to run") };
    let mut packing = Packing::clone(&packing);
    packing.with[0].watch = Some(watched());
    let unit = simple("select 8, 9", Plan::Run(named, Arc::new(packing)));
    assert_eq!(unit.node, UnitNode::Own);
}

#[test]
fn what_a_unit_reads_without_a_lock_is_known() {
    let reads = |statements: &[(&str, &str)]| {
        let ids: Vec<_> = statements.iter().map(|(_, id)| *id).collect();
        let text = format!("select {}", ids.join(", ")); // the literals of all statements
        let (mut normaliser, mut plans) = (Normaliser::new(), Vec::new());
        for (place, (verb, _)) in statements.iter().enumerate() {
            let mut packing = Packing::clone(&packing(LaneKind::Read, true));
            match *verb {
                "update" => packing.kind = LaneKind::Write,
                "list" => (packing.key, packing.watch) = (None, Some(watched())),
                "now" => packing.key = None,
                _ => {}
            }
            plans.push((Plan::Run(Named, Arc::new(packing)), place..place + 1));
        }
        let shape = normaliser.run(&text);
        Packed::simple([b"raw", b""], plans, &shape, &mut BytesMut::new()).claimed.reads
    };
    for (statements, expected) in [
        (&[("update", "1"), ("update", "2")][..], Reads::Nothing),
        (&[("update", "1"), ("select", "1"), ("update", "2")], Reads::Nothing),
        (&[("select", "1"), ("select", "2")], Reads::Nothing), // a batch of reads writes nothing
        (&[("now", "1"), ("update", "2")], Reads::Nothing),
        (&[("select", "1"), ("update", "1")], Reads::OneRowFirst),
        (&[("select", "1"), ("update", "2")], Reads::OneRowFirst),
        (&[("select", "1"), ("select", "2"), ("update", "2")], Reads::Rows),
        (&[("update", "1"), ("select", "2")], Reads::Rows),
        (&[("update", "1"), ("list", "2")], Reads::Rows),
        (&[("list", "1"), ("update", "2")], Reads::Rows),
    ] {
        assert_eq!(reads(statements), expected, "{statements:?}");
    }
}
