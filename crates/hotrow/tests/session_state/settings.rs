//! Every setting that a session can change: the answers are those of a direct connection, and the session is packed
//! wherever its settings allow it.

use hotrow_testkit::raw::{Message, Raw, startup};
use hotrow_testkit::{Gateway, connect, new_schema, rows, server, until};
use tokio_postgres::Client;

const TABLE: &str = "
    create table t (id int primary key, n int, at timestamptz, f float8, b bytea, i interval);
    insert into t values (1, 0, '2020-01-31 12:00+00', 0.1, '\\x00ff', '1 mon -2 hours')";
const UPDATE: &str = "update t set n = n + 1 where id = 1 returning n, at, f, b, i";

/// The settings, with a value that differs from the present one.
const OTHER_VALUES: &str = "
    select name, case vartype
            when 'bool' then case setting when 'on' then 'off' else 'on' end
            when 'enum' then (select value from unnest(enumvals) value where value <> setting limit 1)
            when 'integer' then greatest(min_val::numeric, least(max_val::numeric, setting::numeric + 20000))::text
            when 'real' then greatest(min_val::numeric, least(max_val::numeric, setting::numeric * 2 + 0.5))::text
            else case name
                when 'DateStyle' then 'German, DMY' when 'TimeZone' then 'Asia/Tokyo'
                when 'client_encoding' then 'LATIN1' when 'search_path' then 'public, \"Other\"'
                when 'default_text_search_config' then 'pg_catalog.german'
                else setting end
        end
    from pg_settings where context in ('user', 'superuser') and name not like '%.%' order by name";

/// A session of the superuser in this database.
async fn session(port: u16, database: &str) -> Raw {
    let mut raw = Raw::open(port).await;
    raw.send(&startup(0x0003_0000, &[("user", "postgres"), ("database", database)])).await;
    raw.until_ready(1).await;
    raw
}

/// Two databases with the same table, whose numbers in the catalogue are the same too.
async fn databases() -> (Client, [String; 2]) {
    let (schema, client) = new_schema().await;
    let [one, other] = ["direct", "through"].map(|name| format!("{schema}_{name}"));
    client.batch_execute(&format!("create database {one}")).await.unwrap();
    let inside = connect(hotrow_testkit::config_in(server().port(), "public").dbname(&one)).await;
    inside.batch_execute(TABLE).await.unwrap();
    drop(inside);
    let copy = format!("create database {other} template {one}");
    until("the database is unused", async || client.batch_execute(&copy).await.is_ok()).await;
    (client, [one, other])
}

/// The messages without notices: with `client_min_messages = debug5` they show how the server prepares and runs a
/// statement.
fn comparable(messages: Vec<Message>) -> Vec<Message> {
    messages.into_iter().filter(|message| message.tag != b'N').collect()
}

#[tokio::test]
async fn every_setting_is_as_directly() {
    let (client, [direct, through]) = databases().await;
    let gateway = Gateway::start(&[]);
    let (mut packed, mut settings) = (0, 0);
    for row in rows(&client, OTHER_VALUES).await.unwrap() {
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
