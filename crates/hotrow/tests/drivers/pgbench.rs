//! pgbench in all its query modes: the rows show the transactions that it counts. Never measures anything.

use std::process::Command;

use hotrow_testkit::{Gateway, needed_tool, new_schema, patient, value};
use tokio_postgres::Client;

const INITIAL: i64 = 1_000_000;

/// Runs pgbench through the gateway. Returns the number of transactions that pgbench counted.
async fn pgbench(gateway: &Gateway, schema: &str, script: Option<&str>, args: &[&str]) -> i64 {
    let mut pgbench = Command::new(needed_tool("pgbench"));
    pgbench.args(["-h", "127.0.0.1", "-U", "postgres", "-n", "-p", &gateway.port().to_string()]).args(args);
    pgbench.env("PGOPTIONS", format!("-c search_path={schema}")).env("LC_ALL", "C");
    let file = std::env::temp_dir().join(format!("hotrow-{schema}-{}.pgbench", std::process::id()));
    if let Some(script) = script {
        std::fs::write(&file, script).unwrap();
        pgbench.arg("-f").arg(&file);
    }
    pgbench.arg("postgres");
    let output = tokio::task::spawn_blocking(move || pgbench.output().unwrap()).await.unwrap();
    let _ = std::fs::remove_file(&file);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let counted =
        printed.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let counted = counted.map_or("0", |counted| counted.split('/').next().unwrap_or(counted));
    counted.parse().unwrap()
}

async fn stock(direct: &Client) {
    let sql = format!(
        "create table inv (id int primary key, stock bigint not null, sold bigint not null);
         insert into inv select id, {INITIAL}, 0 from generate_series(1, 3) id"
    );
    direct.batch_execute(&sql).await.unwrap();
}

/// The number of sold items, after a check that none was lost or invented.
async fn sold(direct: &Client) -> i64 {
    assert_eq!(
        value(direct, &format!("select count(*) from inv where stock + sold <> {INITIAL}")).await,
        "0"
    );
    value(direct, "select sum(sold) from inv").await.parse().unwrap()
}

#[tokio::test]
async fn every_query_mode_sells_what_it_counts() {
    let (schema, direct) = new_schema().await;
    // While a lane is slow, its units move to others, and then the lanes wait for each other's rows.
    let gateway = Gateway::start(&patient(&["--lanes", "1"]));
    stock(&direct).await;
    let script = "\\set id random(1, 3)\n\
        update inv set stock = stock - 1, sold = sold + 1 where id = :id and stock >= 1;\n";
    let mut counted = 0;
    for mode in ["simple", "extended", "prepared"] {
        counted += pgbench(&gateway, &schema, Some(script), &["-M", mode, "-c", "8", "-t", "150"]).await;
        assert_eq!(sold(&direct).await, counted, "{mode}");
        let packed = gateway.metric("packed_units_total").cast_signed();
        assert_eq!(packed, counted, "all of them are packed: {mode}\n{}", gateway.metrics());
    }
    assert_eq!(counted, 3 * 8 * 150);
    assert!(gateway.metric("batches_total").cast_signed() < counted, "some commits are shared");
}

#[tokio::test]
async fn pipelines_are_one_transaction_each() {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(&[]);
    stock(&direct).await;
    let one = "update inv set stock = stock - 1, sold = sold + 1 where id = :id and stock >= 1;\n";
    let script = format!("\\set id random(1, 3)\n\\startpipeline\n{one}{one}{one}\\endpipeline\n");
    for mode in ["extended", "prepared"] {
        let before = sold(&direct).await;
        let counted = pgbench(&gateway, &schema, Some(&script), &["-M", mode, "-c", "4", "-t", "50"]).await;
        assert_eq!(counted, 200, "{mode}");
        assert_eq!(sold(&direct).await - before, 3 * counted, "{mode}");
    }
}

#[tokio::test]
async fn the_built_in_benchmark_keeps_its_sums() {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(&[]);
    pgbench(&gateway, &schema, None, &["-i", "-q"]).await;
    assert_eq!(value(&direct, "select count(*) from pgbench_accounts").await, "100000");
    let counted =
        pgbench(&gateway, &schema, None, &["-b", "tpcb-like", "-M", "prepared", "-c", "6", "-t", "25"]).await;
    assert_eq!(counted, 150);
    let sums = "select count(*) || ' ' || (select count(*) from (values
            ((select sum(abalance) from pgbench_accounts)), ((select sum(tbalance) from pgbench_tellers)),
            ((select sum(bbalance) from pgbench_branches))) v(s) where s <> (select sum(delta) from pgbench_history))
        from pgbench_history";
    assert_eq!(value(&direct, sums).await, "150 0");
}
