//! Calls of functions with a pack rule: they share batches one by one, with exact answers. A function that leaves state although
//! its rule says that it does not is detected before another client's statement can see that state.

use std::collections::BTreeSet;
use std::thread;

use hotrow_testkit::line::{Line, until};
use hotrow_testkit::{Gateway, PATIENT_LANES, server};

use crate::connect;

/// A table of counters, and a function that counts by a statement that it builds. Only a rule can say what it does. Each test has
/// names of its own, because calls of functions with one name are judged together.
fn install(schema: &str) -> Line {
    crate::migrate_once();
    let mut direct = connect(server().port());
    let made = direct.query(&format!(
        "create schema {schema};
         create table {schema}.counter_0 (id bigint primary key, value bigint not null);
         insert into {schema}.counter_0 values (1, 0), (2, 0);
         create function {schema}.add_to_{schema}(bigint, amount int) returns bigint language plpgsql as $$
         declare
             result bigint;
         begin
             if amount < 0 then raise exception 'the amount is negative'; end if;
             execute format('update {schema}.counter_%s set value = value + $2 where id = $1 returning value', 0)
                 into result using $1, amount;
             return result;
         end $$;
         create function {schema}.settings_of_{schema}() returns text language sql as
             $$ select concat_ws('/', current_setting('work_mem'), current_setting('search_path'), current_setting('role')) $$;
         select hotrow.add_pack_rule('{schema}.add_to_{schema}(bigint,int)', '1'),
             hotrow.add_pack_rule('{schema}.settings_of_{schema}()')"
    ));
    assert_eq!(made.error(), None);
    direct
}

fn value(line: &mut Line, sql: &str) -> String {
    let answer = line.query(sql);
    assert!(answer.error().is_none(), "{sql}: {:?}", answer.frames());
    answer.rows()[0][0].clone().unwrap_or_default()
}

#[test]
fn declared_calls_share_batches_and_each_gets_its_own_answer() {
    const CLIENTS: usize = 16;
    const CALLS: usize = 40;
    let mut direct = install("declared_calls");
    let gateway = Gateway::start(&[&["--lanes", "1"][..], &PATIENT_LANES].concat());
    let port = gateway.port();
    let mut line = connect(port);
    until("the statement is judged", || {
        value(&mut line, "select declared_calls.add_to_declared_calls(2, 1)");
        gateway.metric("packed_units_total") > 0
    });
    let values: Vec<u64> = thread::scope(|scope| {
        let call = move |_| {
            let mut line = connect(port);
            let call =
                |_| value(&mut line, "select declared_calls.add_to_declared_calls(1, 1)").parse().unwrap();
            (0..CALLS).map(call).collect::<Vec<u64>>()
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || call(number))).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let distinct: BTreeSet<u64> = values.iter().copied().collect();
    assert_eq!(distinct, (1..=(CLIENTS * CALLS) as u64).collect(), "each call has a place in one order");
    assert_eq!(value(&mut direct, "select value from declared_calls.counter_0 where id = 1"), "640");
    let (units, batches) = (gateway.metric("packed_units_total"), gateway.metric("batches_total"));
    assert!(units > 500 && batches < units, "{units} units in {batches} batches");

    // An error is one of its call only.
    let refused = line.query("select declared_calls.add_to_declared_calls(1, -1)");
    assert_eq!(refused.error().unwrap().code, "P0001");
    assert_eq!(value(&mut line, "select declared_calls.add_to_declared_calls(1, 1)"), "641");
}

/// What a function may leave. The source hides it, because a source that shows it is not packed.
const LEAVES: [(&str, &str); 6] = [
    ("setting", "execute 'se' || 't work_mem = 3000'"),
    ("local_setting", "execute 'se' || 't local search_path = pg_temp'"),
    ("role", "execute 'se' || 't role declared_other'"),
    ("temporary_table", "create temp table if not exists left_behind (n int)"),
    ("listens", "execute 'list' || 'en declared_channel'"),
    ("lock", "execute 'select pg_adv' || 'isory_lock(4711)'"),
];

#[test]
fn a_false_declaration_is_detected_and_harms_nobody() {
    let mut direct = install("declared_false");
    let granted = direct.query(
        "create role declared_other;
         grant usage on schema declared_false to declared_other;
         grant select on declared_false.counter_0 to declared_other",
    );
    assert_eq!(granted.error(), None);
    let gateway = Gateway::start(&[&["--lanes", "1"][..], &PATIENT_LANES].concat());
    for (name, leaves) in LEAVES {
        let made = direct.query(&format!(
            "create function declared_false.{name}(bigint) returns bigint language plpgsql as $$
             begin
                 update declared_false.counter_0 set value = value + 1 where id = $1;
                 {leaves};
                 return (select value from declared_false.counter_0 where id = $1);
             end $$;
             update declared_false.counter_0 set value = 0;
             select hotrow.add_pack_rule('declared_false.{name}(bigint)', '1')"
        ));
        assert_eq!(made.error(), None);
        let mut other = connect(gateway.port());
        let settings = value(&mut other, "select declared_false.settings_of_declared_false()");
        let call = format!("select declared_false.{name}(2)");
        let mut calls = 0;
        // Each session is new, because a session in which a function has left settings belongs to another pool afterwards.
        let mut is_excluded = || {
            calls += 1;
            let mut line = connect(gateway.port());
            let packed = gateway.metric("packed_units_total");
            assert_eq!(line.query(&call).error(), None, "{name}");
            gateway.metric("packed_units_total") == packed
        };
        // The first call is judged. Then one runs in the lane, where it is detected, and is repeated by its session.
        until(&format!("calls of {name} are passed through for good"), || {
            assert_eq!(
                value(&mut other, "select declared_false.settings_of_declared_false()"),
                settings,
                "{name}"
            );
            is_excluded() && is_excluded()
        });
        assert_eq!(
            value(&mut other, "select declared_false.settings_of_declared_false()"),
            settings,
            "{name}"
        );
        let counted = value(&mut direct, "select value from declared_false.counter_0 where id = 2");
        assert_eq!(counted, calls.to_string(), "{name}: each call has run once");
        until("no lane keeps anything", || {
            let left = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                where l.locktype = 'advisory' and l.objid = 4711 and a.application_name like 'hotrow lane%'";
            value(&mut direct, left) == "0"
        });
    }
}

#[test]
fn a_rule_is_in_force_until_it_is_removed() {
    let mut direct = install("declared_removed");
    let gateway =
        Gateway::start(&[&["--lanes", "1", "--catalog-age-ms", "2000"][..], &PATIENT_LANES].concat());
    let mut line = connect(gateway.port());
    let packs = |line: &mut Line| {
        let before = gateway.metric("packed_units_total");
        value(line, "select declared_removed.add_to_declared_removed(1, 1)");
        gateway.metric("packed_units_total") > before
    };
    until("calls are packed", || packs(&mut line));
    let removed = direct
        .query("select hotrow.remove_pack_rule('declared_removed.add_to_declared_removed(bigint,int)')");
    assert_eq!(removed.error(), None);
    until("calls are passed through", || !packs(&mut line));
}

/// The server analyses prepared statements anew after such changes. Batches that rely on no table do not care.
#[test]
fn changes_of_roles_roll_no_batch_of_calls_back() {
    let mut direct = install("declared_roles");
    let gateway = Gateway::start(&[&["--lanes", "1"][..], &PATIENT_LANES].concat());
    let mut line = connect(gateway.port());
    let call = "select declared_roles.add_to_declared_roles(1, 1)";
    until("calls are packed", || {
        value(&mut line, call);
        gateway.metric("packed_units_total") > 0
    });
    let before = gateway.metric("packed_units_total");
    for _ in 0..20 {
        assert_eq!(direct.query("create role declared_passing; drop role declared_passing").error(), None);
        value(&mut line, call);
    }
    assert_eq!(gateway.metric("packed_units_total") - before, 20);
}
