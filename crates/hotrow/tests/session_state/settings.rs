//! Every setting that a session can change: the answers are those of a direct connection, and the session is packed
//! wherever its settings allow it.

use hotrow_postgres::PrivateServer;
use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, startup, sync};
use hotrow_testkit::{Gateway, PATIENT_LANES, connect, new_schema, rows, server, until, value};
use tokio_postgres::Client;

use crate::Stage;

const TABLE: &str = "
    create table t (id int primary key, n int, at timestamptz, f float8, b bytea, i interval);
    insert into t values (1, 0, '2020-01-31 12:00+00', 0.1, '\\x00ff', '1 mon -2 hours')";
pub const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n, at, f, b, i";

/// A value of a setting in `pg_settings` that differs from the present one, if there is one: a server that is built without LZ4
/// has one way to compress.
pub const OTHER_VALUE: &str = "
    case vartype
        when 'bool' then case setting when 'on' then 'off' else 'on' end
        when 'enum' then coalesce((select value from unnest(enumvals) value where value <> setting limit 1), setting)
        when 'integer' then greatest(min_val::numeric, least(max_val::numeric, setting::numeric + 20000))::text
        when 'real' then greatest(min_val::numeric, least(max_val::numeric, setting::numeric * 2 + 0.5))::text
        else case name
            when 'DateStyle' then 'German, DMY' when 'TimeZone' then 'Asia/Tokyo'
            when 'client_encoding' then 'LATIN1' when 'search_path' then 'public, \"Other\"'
            when 'default_text_search_config' then 'pg_catalog.german'
            else setting end
    end";

/// A session of the superuser in this database.
pub async fn session(port: u16, database: &str) -> Raw {
    session_of(port, database, "postgres").await
}

/// A session of this role in this database.
pub async fn session_of(port: u16, database: &str, role: &str) -> Raw {
    let mut raw = Raw::open(port).await;
    raw.send(&startup(0x0003_0000, &[("user", role), ("database", database)])).await;
    raw.until_ready(1).await;
    raw
}

/// Two databases with the same table, whose numbers in the catalog are the same too.
pub async fn databases() -> (Client, [String; 2]) {
    let (schema, client) = new_schema().await;
    let names = ["direct", "through"].map(|name| format!("{schema}_{name}"));
    create_databases(server().port(), &client, &names).await;
    (client, names)
}

/// A server with two such databases, for comparisons of statements that were prepared under other settings. On a server with
/// other sessions, a session that gets no CPU time while they change the catalog of any database misses messages
/// about changes. It then analyses all its statements again, and reads their constants under its present settings.
pub async fn own_server() -> (PrivateServer, [&'static str; 2]) {
    let server = PrivateServer::builder().label("settings").start().unwrap();
    let client = connect(&hotrow_testkit::config_in(server.port(), "public")).await;
    let names = ["direct", "through"];
    create_databases(server.port(), &client, &names.map(str::to_owned)).await;
    (server, names)
}

async fn create_databases(port: u16, client: &Client, [one, other]: &[String; 2]) {
    client.batch_execute(&format!("create database {one}")).await.unwrap();
    let inside = connect(hotrow_testkit::config_in(port, "public").dbname(one)).await;
    inside.batch_execute(TABLE).await.unwrap();
    drop(inside);
    let copy = format!("create database {other} template {one}");
    until("the database is unused", async || client.batch_execute(&copy).await.is_ok()).await;
}

/// The messages without notices: with `client_min_messages = debug5` they show how the server prepares and runs a
/// statement. Reports of settings that follow each other are sorted by name: the server sends them in the order in which the
/// connection last changed them, and a pool's connection can have changed them in another one.
pub fn comparable(messages: Vec<Message>) -> Vec<Message> {
    let mut kept: Vec<Message> = messages.into_iter().filter(|message| message.tag != b'N').collect();
    for reports in kept.chunk_by_mut(|one, next| one.tag == b'S' && next.tag == b'S') {
        reports.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    }
    kept
}

fn name_of(report: &Message) -> &[u8] {
    report.body.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn every_setting_is_as_directly() {
    let (client, [direct, through]) = databases().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    let (mut packed, mut settings) = (0, 0);
    let all = format!(
        "select name, {OTHER_VALUE} from pg_settings
        where context in ('user', 'superuser') and name not like '%.%' order by name"
    );
    for row in rows(&client, &all).await.unwrap() {
        let [Some(name), Some(value)] = &row[..] else { panic!("{row:?}") };
        let mut direct = session(server().port(), &direct).await;
        let mut session = session(gateway.port(), &through).await;
        let value = value.replace('\'', "''");
        let set = format!("set {name} = '{value}'");
        let set = if name == "search_path" { format!("set {name} = {value}") } else { set };
        let (show, reset) = (format!("show {name}"), format!("reset {name}"));
        let before = gateway.metric("packed_units_total");
        for text in [
            &set,
            &show,
            UPDATE,
            &show,
            "begin",
            &reset,
            &show,
            "rollback",
            &show,
            UPDATE,
            &reset,
            &show,
            UPDATE,
            &set,
            "discard all",
            &show,
            UPDATE,
        ] {
            let [directly, through] = [&mut direct, &mut session].map(|raw| raw.query(text));
            let (directly, through) = (comparable(directly.await), comparable(through.await));
            assert_eq!(through, directly, "{set}: {text}");
        }
        settings += 1;
        packed += usize::from(gateway.metric("packed_units_total") >= before + 4);
    }
    assert!(10 * packed > 9 * settings, "only {packed} of {settings} are packed");
    println!("{packed} of {settings} settings are packed");
}

/// A client that repeats its SET, as some pools do whenever they hand out a connection, is answered without the server.
#[tokio::test]
async fn a_set_to_the_value_in_force_needs_no_connection() {
    let (_client, [direct, through]) = databases().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    for set in
        ["set work_mem = '5MB'", "set session time zone 'Asia/Tokyo'", "set search_path to public, pg_temp"]
    {
        let mut direct = session(server().port(), &direct).await;
        let mut session = session(gateway.port(), &through).await;
        let extended = [parse("", set), bind("", "", &[]), execute("", 0), sync()].concat();
        let named = [parse("s", set), bind("", "s", &[]), execute("", 0), sync()].concat();
        let block =
            [query("begin"), query(set), query("select n from t where id = 1"), query("commit")].concat();
        let seven = "set work_mem = '7MB'";
        let turns = [
            // A SET that was bound and not run is not known to keep the value.
            (query("set work_mem = '6MB'"), 1),
            ([parse("", seven), bind("", "", &[]), sync()].concat(), 1),
            (query(seven), 1),
            (query("show work_mem"), 1),
            (query("reset all"), 1),
            (query(set), 1),
            (query("show work_mem"), 1),
            (query(set), 1),
            (extended.clone(), 1),
            (named, 1),
            (block.clone(), 4),
            ([query("begin"), extended.clone(), query("rollback")].concat(), 3),
            ([query("begin"), query("select 1 / 0"), query(set), query("rollback")].concat(), 4),
            (query("show timezone"), 1),
            (query(UPDATE), 1),
        ];
        for (messages, readies) in &turns {
            let mut answers = Vec::new();
            for raw in [&mut direct, &mut session] {
                raw.send(messages).await;
                answers.push(comparable(raw.until_ready(*readies).await));
            }
            assert_eq!(answers[1], answers[0], "{set}: {}", String::from_utf8_lossy(messages));
        }
        // The first run of the text is the only one that the server gets outside of transactions with other statements.
        let passed = gateway.metric("passed_through_units_total");
        let rolled_back = [query("begin"), query(set), query("rollback")].concat();
        for (messages, readies) in [(&query(set), 1), (&extended, 1), (&rolled_back, 3)] {
            for _ in 0..20 {
                session.send(messages).await;
                session.until_ready(readies).await;
            }
        }
        assert_eq!(gateway.metric("passed_through_units_total"), passed, "{set}");
        // Each step takes the server once for all sessions, and RESET always.
        let six = "set work_mem = '6MB'";
        for units in [[0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0, 0]] {
            let mut other = self::session(gateway.port(), &through).await;
            for (place, text) in [set, set, six, set, "reset all", set, set].into_iter().enumerate() {
                let before = gateway.metric("passed_through_units_total");
                other.query(text).await;
                let passed = gateway.metric("passed_through_units_total") - before;
                assert_eq!(passed, units[place], "{set}: step {place}");
            }
        }
    }
}

/// A prepared statement keeps the meaning that its text had when it was prepared.
#[tokio::test]
#[ignore = "long: make test-all"]
async fn prepared_statements_are_not_read_again_after_a_set() {
    let (server, [direct, through]) = own_server().await;
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    for (sql, set) in [
        ("select extract(epoch from timestamptz '2020-01-01 10:00')", "set timezone = 'Asia/Tokyo'"),
        (
            "update t set at = '2020-01-01 10:00' where id = 1 returning extract(epoch from at)",
            "set timezone = 'Asia/Tokyo'",
        ),
        ("select date '01/02/2020' - date '2020-01-01'", "set datestyle = 'SQL, DMY'"),
        ("select n = null from t where id = 1", "set transform_null_equals = on"),
        (r"select length('a\\nb')", "set standard_conforming_strings = off"),
        ("select length('é')", "set client_encoding = 'LATIN1'"),
        ("select n from t where id = 1", "set timezone = 'Asia/Tokyo'"),
    ] {
        let mut answers = Vec::new();
        for (port, database) in [(server.port(), direct), (gateway.port(), through)] {
            let mut raw = session(port, database).await;
            let run = [bind("", "p", &[]), execute("", 0), sync()].concat();
            raw.send(&[parse("p", sql), run.clone()].concat()).await;
            let mut all = raw.until_ready(1).await;
            raw.send(&[query("begin"), query(set), query("commit")].concat()).await;
            all.extend(raw.until_ready(3).await);
            raw.send(&run).await;
            all.extend(raw.until_ready(1).await);
            answers.push(comparable(all));
        }
        assert_eq!(answers[0], answers[1], "{set}: {sql}");
    }
}

/// The gateway looks at the session's settings after the client has its answer.
#[tokio::test]
async fn a_late_cancel_request_or_a_short_timeout_changes_no_setting() {
    let (_client, [_, through]) = databases().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    for timeout in ["0", "1ms"] {
        for _ in 0..30 {
            let config = hotrow_testkit::config_in(gateway.port(), "public");
            let client = connect(config.clone().dbname(&through)).await;
            client.batch_execute(&format!("set statement_timeout = '{timeout}'")).await.unwrap();
            until("it is set", async || client.batch_execute("set timezone = 'Asia/Tokyo'").await.is_ok())
                .await;
            client.cancel_token().cancel_query(tokio_postgres::NoTls).await.unwrap();
            let mut shown = rows(&client, "show timezone").await;
            while shown.is_err() {
                shown = rows(&client, "show timezone").await; // cancelled, as it can be directly
            }
            assert_eq!(shown.unwrap()[0][0].as_deref(), Some("Asia/Tokyo"), "statement_timeout {timeout}");
        }
    }
}

/// A rule of the view calls `set_config`.
#[tokio::test]
async fn a_setting_that_an_update_of_pg_settings_changes_stays_with_its_client() {
    let stage = Stage::new(&[]).await;
    stage
        .direct
        .batch_execute("create view settings as select name, setting from pg_settings")
        .await
        .unwrap();
    for update in [
        "update pg_settings set setting = '6144' where name = 'work_mem'",
        "with x as (select 6144 as n) update settings set setting = x.n::text from x where name = 'work_mem'",
        "do $$ begin update pg_settings set setting = '6144' where name = 'work_mem'; end $$",
    ] {
        let ann = stage.client().await;
        ann.batch_execute(update).await.unwrap();
        let bob = stage.client().await;
        assert_ne!(value(&bob, "show work_mem").await, "6MB", "{update}");
        assert_eq!(value(&ann, "show work_mem").await, "6MB", "{update}");
    }
}
