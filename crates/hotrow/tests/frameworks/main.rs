//! One hot row updated by the programs under examples/frameworks, directly and through a gateway: how many statements
//! the gateway packed, why not the others, and the rates. `make frameworks` runs this and prints a table. `cargo test`
//! does not, because it needs all their languages.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod counts;
mod program;
mod report;

use std::env;
use std::future::pending;

use hotrow_testkit::{Gateway, connect, server};

use counts::Counts;
use program::{Framework, Run, Variant, framework};
use report::{Line, SHARE_MIN};

hotrow_testkit::shared_server!();

const PYTHON: &str = "../../../target/frameworks-python/bin/python";
const JARS: &str = "target/classes:target/dependency/*";

/// The programs. A name is also the name of a database.
const FRAMEWORKS: &[Framework] = &[
    framework("django", "python", &[PYTHON, "django_orm.py"], "shop_item"),
    framework("sqlalchemy", "python", &[PYTHON, "sqlalchemy_orm.py"], "item").wrapping(),
    framework("active_record", "ruby", &["ruby", "active_record.rb"], "items"),
    framework("sequelize", "node", &["node", "sequelize.js"], "\"Items\""),
    framework("knex", "node", &["node", "knex.js"], "items"),
    framework("typeorm", "node", &["node", "typeorm.js"], "item"),
    framework("drizzle", "node", &["node", "drizzle.js"], "items"),
    framework("hibernate", "java", &["java", "-cp", JARS, "frameworks.HibernateItem"], "item").wrapping(),
    framework("spring_data_jdbc", "java", &["java", "-cp", JARS, "frameworks.SpringDataItem"], "item"),
    framework("jooq", "java", &["java", "-cp", JARS, "frameworks.JooqItem"], "item"),
    framework("gorm", "go", &["../../../target/frameworks-go/gorm"], "items").wrapping(),
    framework("bun", "go", &["../../../target/frameworks-go/bun"], "items"),
    framework("sqlx", "rust", &["../../../target/frameworks-rust/release/sqlx"], "items"),
    framework("diesel", "rust", &["../../../target/frameworks-rust/release/diesel"], "items"),
];

/// Concurrent workers of each program.
const WORKERS: usize = 32;

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// The frameworks that `HOTROW_TEST_FRAMEWORKS` names, or all.
fn chosen() -> Vec<&'static Framework> {
    let names = env::var("HOTROW_TEST_FRAMEWORKS").unwrap_or_default();
    let names: Vec<&str> = names.split_whitespace().collect();
    for name in &names {
        assert!(FRAMEWORKS.iter().any(|framework| framework.name == *name), "no framework is called {name}");
    }
    FRAMEWORKS.iter().filter(|framework| names.is_empty() || names.contains(&framework.name)).collect()
}

/// Whether only the shares of the autocommit updates are of interest, not the rates.
fn is_quick() -> bool {
    env::var("HOTROW_TEST_QUICK").is_ok_and(|value| !value.is_empty())
}

/// Runs a variant directly and through a new gateway in turn, and checks the row after each run.
async fn measure(framework: &Framework, variant: Variant) -> Line {
    let seconds = setting("HOTROW_TEST_SECONDS", if is_quick() { 1 } else { 5 });
    let rounds = setting("HOTROW_TEST_ROUNDS", 1);
    let mut line = Line::new(framework.name, variant);
    for _ in 0..rounds {
        let run = Run { framework, variant, workers: WORKERS, seconds };
        if !is_quick() {
            line.direct.push(run.checked(server().port(), pending()).await);
        }
        let gateway = Gateway::start(&["--log", "warn"]);
        let mut counts = Counts::new(&gateway).await;
        line.through.push(run.checked(gateway.port(), counts.watch_clients()).await);
        line.counts = counts.read().await;
    }
    line
}

#[tokio::test]
async fn frameworks() {
    let postgres = connect(&hotrow_testkit::config(server().port())).await;
    let mut lines = Vec::new();
    for framework in chosen() {
        postgres.batch_execute(&format!("create database {}", framework.name)).await.unwrap();
        framework.set_up(server().port()).await;
        for variant in framework.variants().filter(|variant| !is_quick() || *variant == Variant::Autocommit) {
            lines.push(measure(framework, variant).await);
            report::print(lines.last().unwrap());
        }
    }
    report::print_table(&lines);
    for line in lines.iter().filter(|line| line.variant == Variant::Autocommit) {
        let share = line.counts.share();
        assert!(share >= SHARE_MIN, "{}: only {:.1} % of the updates were packed", line.name, share * 100.0);
    }
}
