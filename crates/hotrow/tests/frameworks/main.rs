//! One hot row updated by the programs under examples/frameworks, directly and through a gateway: how many statements
//! the gateway packed, why not the others, and the rates, on a server whose WAL flushes take as long as on a cloud disk.
//! `make frameworks` runs this and prints a table. `cargo test` does not, because it needs all their languages. `make
//! applications` runs applications of other projects in a similar way.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod applications;
mod counts;
mod framework;
mod program;
mod report;

use std::env;
use std::future::pending;

use hotrow_postgres::{PrivateServer, SlowFlush};
use hotrow_testkit::{Gateway, connect};

use counts::Counts;
use framework::{Framework, Run, Variant, framework};
use program::chosen;
use report::{Line, SHARE_MIN};

/// How much longer a flush takes than the disk needs, in microseconds.
const FLUSH_DELAY_US: u32 = 1_500;

const PYTHON: &str = "../../../target/frameworks-python/bin/python";
const JARS: &str = "target/classes:target/dependency/*";

/// The programs. A name is also the name of a database.
const FRAMEWORKS: &[Framework] = &[
    framework("django", "python", &[PYTHON, "django_orm.py"], "shop_item"),
    framework("sqlalchemy", "python", &[PYTHON, "sqlalchemy_orm.py"], "item").wrapping(),
    framework("peewee", "python", &[PYTHON, "peewee_orm.py"], "item"),
    framework("tortoise", "python", &[PYTHON, "tortoise_orm.py"], "item"),
    framework("asyncpg", "python", &[PYTHON, "asyncpg_pool.py"], "items"),
    framework("psycopg_pool", "python", &[PYTHON, "psycopg_pool_program.py"], "items").wrapping(),
    framework("active_record", "ruby", &["ruby", "active_record.rb"], "items"),
    framework("sequelize", "node", &["node", "sequelize.js"], "\"Items\""),
    framework("knex", "node", &["node", "knex.js"], "items"),
    framework("typeorm", "node", &["node", "typeorm.js"], "item"),
    framework("drizzle", "node", &["node", "drizzle.js"], "items"),
    framework("prisma", "node", &["node", "prisma.js"], "\"Item\""),
    framework("kysely", "node", &["node", "kysely.js"], "items"),
    framework("mikro_orm", "node", &["node", "mikro-orm.js"], "item"),
    framework("eloquent", "php", &["php", "eloquent.php"], "items"),
    framework("doctrine", "php", &["php", "doctrine.php"], "item"),
    framework("hibernate", "java", &["java", "-cp", JARS, "frameworks.HibernateItem"], "item").wrapping(),
    framework("spring_data_jdbc", "java", &["java", "-cp", JARS, "frameworks.SpringDataItem"], "item"),
    framework("jooq", "java", &["java", "-cp", JARS, "frameworks.JooqItem"], "item"),
    framework("gorm", "go", &["../../../target/frameworks-go/gorm"], "items").wrapping(),
    framework("bun", "go", &["../../../target/frameworks-go/bun"], "items"),
    framework("sqlc", "go", &["../../../target/frameworks-go/sqlc"], "items"),
    framework("sqlx", "rust", &["../../../target/frameworks-rust/release/sqlx"], "items"),
    framework("diesel", "rust", &["../../../target/frameworks-rust/release/diesel"], "items"),
];

/// Concurrent workers of each program.
const WORKERS: usize = 32;

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Whether only the shares of the autocommit updates are of interest, not the rates.
fn is_quick() -> bool {
    env::var("HOTROW_TEST_QUICK").is_ok_and(|value| !value.is_empty())
}

/// The server, with the delay of its flushes or the reason why they are not delayed.
struct Database {
    server: PrivateServer,
    slow_flush: Result<SlowFlush, String>,
}

impl Database {
    fn start() -> Self {
        let slow_flush = SlowFlush::prepare().unwrap();
        let mut builder = PrivateServer::builder().label("frameworks");
        if let Ok(slow_flush) = &slow_flush {
            builder = builder.slow_flush(slow_flush);
            slow_flush.set(FLUSH_DELAY_US).unwrap();
        }
        Database { server: builder.start().unwrap(), slow_flush }
    }

    /// What decides the time of a flush there, as a line of the report.
    fn describe_flushes(&self) -> String {
        let delay_ms = f64::from(FLUSH_DELAY_US) / 1_000.0;
        match &self.slow_flush {
            Ok(_) => format!("A flush of the server's log takes {delay_ms} ms longer than the disk needs."),
            Err(reason) => format!(
                "NO DELAY: a flush of the server's log takes only what the disk needs, so these rates are not \
                comparable with those at {delay_ms} ms more. {reason}"
            ),
        }
    }
}

/// Runs a variant directly and through a new gateway in turn, and checks the row after each run.
async fn measure(server: &PrivateServer, framework: &Framework, variant: Variant) -> Line {
    let seconds = setting("HOTROW_TEST_SECONDS", if is_quick() { 1 } else { 5 });
    let rounds = setting("HOTROW_TEST_ROUNDS", 1);
    let mut line = Line::new(framework.program.name, variant);
    for _ in 0..rounds {
        let run = Run { framework, variant, server: server.port(), workers: WORKERS, seconds };
        if !is_quick() {
            line.direct.push(run.checked(server.port(), pending()).await);
        }
        let gateway = Gateway::in_front_of(&server.url(), &["--log", "warn"]);
        let mut counts = Counts::new(&gateway).await;
        line.through.push(run.checked(gateway.port(), counts.watch_clients()).await);
        line.counts = counts.read().await;
    }
    line
}

#[tokio::test]
async fn frameworks() {
    let database = tokio::task::spawn_blocking(Database::start).await.unwrap();
    let server = &database.server;
    let postgres = connect(&hotrow_testkit::config(server.port())).await;
    let mut lines = Vec::new();
    for framework in chosen(FRAMEWORKS, |framework| framework.program.name) {
        postgres.batch_execute(&format!("create database {}", framework.program.name)).await.unwrap();
        framework.set_up(server.port()).await;
        for variant in framework.variants().filter(|variant| !is_quick() || *variant == Variant::Autocommit) {
            lines.push(measure(server, framework, variant).await);
            report::print(lines.last().unwrap());
        }
    }
    report::print_table(&lines, &database.describe_flushes());
    for line in lines.iter().filter(|line| line.variant == Variant::Autocommit) {
        let share = line.counts.share();
        assert!(share >= SHARE_MIN, "{}: only {:.1} % of the updates were packed", line.name, share * 100.0);
    }
}
