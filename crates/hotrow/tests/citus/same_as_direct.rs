//! The same statements through the gateway and at the coordinator, on tables of their own.

use hotrow_testkit::{Gateway, config, connect, describe};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::{LANES, Stage};

/// Tables of all kinds that Citus has, under a name that ends with the side.
fn tables(side: &str) -> String {
    format!(
        "create table accounts_{side} (id bigint primary key, n int not null, note text check (note <> 'bad'));
         create table names_{side} (name text primary key, n int);
         create table ids_{side} (id uuid primary key, n int);
         create table small_{side} (id smallint, part text, n int, primary key (id, part));
         create table events_{side} (id bigserial primary key, n int);
         create type mood_{side} as enum ('calm', 'angry');
         create table moods_{side} (id int primary key, mood mood_{side});
         create table codes_{side} (id int primary key, n int);
         create table plain_{side} (id int primary key, n int);
         select create_distributed_table('accounts_{side}', 'id');
         select create_distributed_table('names_{side}', 'name');
         select create_distributed_table('ids_{side}', 'id');
         select create_distributed_table('small_{side}', 'id');
         select create_distributed_table('events_{side}', 'id');
         select create_distributed_table('moods_{side}', 'id');
         select create_reference_table('codes_{side}');
         insert into accounts_{side} select id, 0, null from generate_series(-20, 20) id;
         insert into names_{side} select 'name ' || id, 0 from generate_series(1, 20) id;
         insert into ids_{side} select md5(id::text)::uuid, 0 from generate_series(1, 20) id;
         insert into small_{side} select id, 'ä', 0 from generate_series(-5, 5) id;
         insert into moods_{side} select id, 'calm' from generate_series(1, 5) id;
         insert into codes_{side} select id, 0 from generate_series(1, 5) id;
         insert into plain_{side} select id, 0 from generate_series(1, 5) id;"
    )
}

/// `@` stands for the side.
const STATEMENTS: &[&str] = &[
    "update accounts_@ set n = n + 1 where id = 7 returning id, n, note",
    "update accounts_@ set n = n + 1 where id = -7 returning *",
    "update accounts_@ set n = n + 1 where id = 700",
    "update accounts_@ set n = 1 / (n - n) where id = 3",
    "update accounts_@ set note = 'bad' where id = 4",
    "update accounts_@ set id = 5 where id = 4",
    "update accounts_@ set n = n + 1 where id = null",
    "update accounts_@ set n = n + 1 where id in (1, 2, 3, 4) returning n",
    "update accounts_@ set n = n + 1 where id = any ('{5,6}') returning n",
    "update accounts_@ set n = n + 1 returning 1",
    "select * from accounts_@ where id = 7",
    "select n from accounts_@ where id = 99",
    "select count(*), sum(n) from accounts_@",
    "insert into accounts_@ (id, n) values (50, 1) on conflict (id) do update set n = accounts_@.n + 1 returning n",
    "insert into accounts_@ (id, n) values (7, 1)",
    "delete from accounts_@ where id = 20 returning id",
    "update names_@ set n = n + 1 where name = 'name 3' returning n",
    "update names_@ set n = n + 1 where name = 'naïve'",
    "select name, n from names_@ where name = 'name 12'",
    "update ids_@ set n = n + 1 where id = 'c4ca4238a0b923820dcc509a6f75849b' returning n",
    "update ids_@ set n = n + 1 where id = '{C4CA4238-A0B9-2382-0DCC-509A6F75849B}' returning n",
    "update small_@ set n = n + 1 where id = 3 and part = 'ä' returning id, part, n",
    "update small_@ set n = n + 1 where id = 3 and part = 'a'",
    "insert into events_@ (n) values (1) returning n",
    "update moods_@ set mood = 'angry' where id = 2 returning mood",
    "select mood from moods_@ where id = 2",
    "update codes_@ set n = n + 1 where id = 2 returning n",
    "select n from codes_@ where id = 2",
    "update plain_@ set n = n + 1 where id = 2 returning n",
    "begin; update accounts_@ set n = n + 1 where id = 7; update accounts_@ set n = n + 1 where id = 7; commit",
    "begin; update accounts_@ set n = n + 1 where id = 1; update accounts_@ set n = n - 1 where id = 2; commit",
    "begin; update accounts_@ set n = n + 1 where id = 7; update plain_@ set n = n + 1 where id = 2; commit",
    "begin; update accounts_@ set n = n + 1 where id = 7; update codes_@ set n = n + 1 where id = 2; rollback",
    "select n, (select count(*) from plain_@) from accounts_@ where id = 7",
    "update accounts_@ set n = (select max(n) from accounts_@) where id = 7",
    "select * from accounts_@ where id = 7 for update",
    "update accounts_@ set n = n + 1 where id = 7 returning n / 3.0::float8",
];

/// Settings that change how answers look. The session moves to a pool with these settings.
const SETTINGS: &[&str] = &["set extra_float_digits = 0"];

/// Rounds in which statements run on nodes, and rounds in all. A node is asked about a statement after its first run, and about
/// one statement at a time.
const ROUNDS: usize = 3;
const ROUNDS_MAX: usize = 60;

/// The answer as text: rows and tags, or the error. The order of rows from several shards is not defined.
async fn run(client: &Client, statement: &str, side: &str) -> String {
    let text = statement.replace('@', side);
    match client.simple_query(&text).await {
        Ok(messages) => sorted(
            messages
                .iter()
                .map(|message| match message {
                    SimpleQueryMessage::Row(row) => {
                        let values: Vec<_> =
                            (0..row.len()).map(|place| row.get(place).unwrap_or("NULL")).collect();
                        format!("row {}\n", values.join(","))
                    }
                    SimpleQueryMessage::CommandComplete(rows) => format!("{rows} rows\n"),
                    SimpleQueryMessage::RowDescription(columns) => {
                        let names: Vec<_> = columns.iter().map(|column| column.name()).collect();
                        format!("columns {}\n", names.join(","))
                    }
                    _ => String::new(),
                })
                .collect(),
        ),
        // The names of shards differ between the tables of the two sides.
        Err(error) => without_digits(&describe(&error).replace(&format!("_{side}"), "_@")),
    }
}

fn sorted(mut lines: Vec<String>) -> String {
    lines.sort();
    lines.concat()
}

fn without_digits(text: &str) -> String {
    let line = |text: &str| {
        text.find("routine").map(|end| text[..end].to_owned()).unwrap_or_else(|| text.to_owned())
    };
    line(text).chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Runs all statements on both sides until lanes to nodes have run enough of them.
async fn compare(stage: &Stage, through: &Client, direct: &Client) {
    let mut rounds_on_nodes = 0;
    for round in 0..ROUNDS_MAX {
        let before = units_on_nodes(stage).await;
        for statement in STATEMENTS {
            let (there, here) = (run(direct, statement, "a").await, run(through, statement, "b").await);
            assert_eq!(there, here, "round {round}: {statement}");
        }
        let units = units_on_nodes(stage).await;
        rounds_on_nodes += usize::from(units.iter().zip(before).all(|(now, before)| *now > before + 2));
        if rounds_on_nodes == ROUNDS {
            return;
        }
    }
    panic!("the lanes to nodes have run {:?} units", units_on_nodes(stage).await);
}

/// Number of units that lanes to nodes have run: writes and reads.
async fn units_on_nodes(stage: &Stage) -> [u64; 2] {
    let lanes = stage.lanes().await;
    let sum = |kind: &str| {
        let of_kind = lanes.iter().filter(|(node, of, _)| of == kind && !node.is_empty());
        of_kind.map(|(.., units)| units).sum()
    };
    ["write", "read"].map(sum)
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_have_the_same_answers_as_at_the_coordinator() {
    let tables = tables("a") + &tables("b");
    let Some(stage) = Stage::new(&tables).await else { return };
    let through = stage.client().await;
    let direct = connect(&config(stage.cluster.coordinator.port())).await;
    compare(&stage, &through, &direct).await;
    for setting in SETTINGS {
        assert_eq!(run(&direct, setting, "a").await, run(&through, setting, "b").await);
    }
    compare(&stage, &through, &direct).await;
    let contents = |side: &str| {
        format!(
            "select (select sum(n * id) from accounts_{side}), (select sum(n) from names_{side}),
                    (select sum(n) from small_{side}), (select sum(n) from plain_{side})"
        )
    };
    assert_eq!(run(&stage.direct, &contents("a"), "a").await, run(&stage.direct, &contents("b"), "b").await);
    // A worker as the server of a gateway: the rows of its own shards are in its own lanes.
    let worker = Gateway::in_front_of(&stage.cluster.workers[0].url(), LANES);
    let through = connect(&worker.config()).await;
    for _ in 0..3 {
        for statement in
            STATEMENTS.iter().filter(|text| text.contains("accounts_@ set n = n + 1 where id = "))
        {
            run(&through, statement, "b").await;
        }
    }
    assert!(worker.metric("packed_units_total") > 0);
}
