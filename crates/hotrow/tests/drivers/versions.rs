//! Statements and properties of tables that only some versions of PostgreSQL have. The answers must be those of a direct connection
//! on every version: on an older one, they are errors.

use hotrow_testkit::raw::{Message, query};
use hotrow_testkit::value;

use crate::stage::Stage;

/// The first version that has the statement, a change of the table, the statement, and whether it is packed.
type Case = (u32, &'static str, &'static str, bool);

const WITHOUT_OVERLAPS: &str =
    "add a int4range default '[1,2)', add r int4range, add unique (a, r without overlaps)";

const CASES: &[Case] = &[
    (
        14,
        "add d int generated always as (n * 2) stored",
        "update t set n = n + 1 where id = 1 returning d",
        true,
    ),
    (15, "add unique nulls not distinct (label)", "update t set n = n + 1 where label = 'row 1'", true),
    (
        15,
        "add unique nulls not distinct (label)",
        "insert into t values (20, 1, null), (21, 1, null) on conflict (label) do nothing",
        true,
    ),
    (
        15,
        "",
        "merge into t using (values (1)) s (id) on t.id = s.id when matched then update set n = n + 1",
        false,
    ),
    (16, "", "update t set n = 0x10 + 1_0 where id = 1 returning n", true),
    (16, "", "update t set label = json_array(n, id)::text where id = 1 returning label", true),
    (16, "", "select label is json from t where id = 1", false),
    (
        17,
        "",
        "merge into t using (values (1)) s (id) on t.id = s.id when matched then update set n = 2 returning merge_action(), t.n",
        false,
    ),
    (17, "", "select a from t, json_table('[1]', '$[*]' columns (a int path '$')) where id = 1", false),
    (17, "", "update t set n = random(7, 7) where id = 1 returning n", true),
    (18, "", "update t set n = n + 1 where id = 1 returning old.n, new.n", true),
    (18, "", "delete from t where id = 1 returning old.n, new.n", true),
    (
        18,
        "",
        "insert into t values (1, 0, 'x') on conflict (id) do update set n = t.n + 1 returning old.label, new.n",
        true,
    ),
    (18, "", "update t set n = n + 1 where id = 1 returning with (old as o) o.n", false),
    (
        18,
        "add d int generated always as (n * 2) virtual",
        "update t set n = n + 1 where id = 1 returning d",
        true,
    ),
    (18, "add d int generated always as (n * 2)", "select d from t where id = 1", true),
    (18, WITHOUT_OVERLAPS, "update t set n = n + 1 where a = '[1,2)' and r = '[3,4)'", true),
    (
        18,
        WITHOUT_OVERLAPS,
        "insert into t values (20, 0, '', '[1,2)', '[3,4)'), (21, 0, '', '[1,2)', '[2,4)') on conflict do nothing",
        true,
    ),
    (18, "add check (n < 0) not enforced", "update t set n = n + 1 where id = 1", true),
    (18, "", "select casefold(label) from t where id = 1", true),
];

#[tokio::test]
async fn statements_that_only_some_versions_have() {
    let plain = Stage::new().await;
    let major = value(&plain.direct, "select current_setting('server_version_num')::int / 10000").await;
    let major: u32 = major.parse().unwrap();
    for &(since, change, statement, is_packed) in CASES {
        let is_there = since <= major;
        if change.is_empty() {
            let (replies, packed) = answers(&plain, statement).await;
            assert_eq!(replies[0].tag == b'E', !is_there, "version {major}, {statement}: {replies:?}");
            assert_eq!(packed, u64::from(is_packed && is_there), "version {major}, {statement}");
            continue;
        }
        let stage = Stage::new().await;
        let changed = stage.direct.batch_execute(&format!("alter table t {change}")).await;
        assert_eq!(changed.is_ok(), is_there, "version {major}, {change}: {changed:?}");
        let (_, packed) = answers(&stage, statement).await;
        if is_there {
            assert_eq!(packed, u64::from(is_packed), "version {major}, {change}, {statement}");
        }
    }
}

/// The replies to a statement, which must be those of a direct connection, and the number of packed units.
async fn answers(stage: &Stage, statement: &str) -> (Vec<Message>, u64) {
    let before = stage.packed();
    let replies = stage.same(statement, &[query(statement)]).await;
    let last = 1; // `same` sends one more statement, which is packed
    (replies, stage.packed() - before - last)
}
