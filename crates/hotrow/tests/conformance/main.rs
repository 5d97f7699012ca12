//! Test suites of other projects, directly and through the gateway: only listed exceptions may fail only through the
//! gateway. `make conformance` runs this test, and `docs/conformance.md` describes it and has the results.
#![expect(clippy::unwrap_used, reason = "the lints' exception for tests stops at #[test]")]

mod compare;
mod report;
mod suite;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use compare::{Comparison, Exceptions, compare, only_through};
use hotrow_postgres::{Binaries, PrivateServer};
use hotrow_testkit::{Gateway, config, connect};
use report::{Report, Section};
use serde::Deserialize;
use suite::{Outcome, Outcomes, Suite};

/// The suites' own database, because some suites drop the objects that they find.
const DATABASE: &str = "conformance";
/// If more tests than this fail, flakiness is not the reason.
const RETRIES_MAX: usize = 10;
/// A test counts if it fails only through the gateway so many times in a row. On a loaded machine, a test of asyncpg's
/// pool fails in one run of three, also directly.
const ROUNDS: usize = 5;
/// Suites that run at the same time, each with servers of its own. A suite waits for clocks and processes half of the time.
const AT_ONCE: usize = 2;

#[derive(Deserialize)]
struct Suites {
    suite: Vec<Suite>,
}

/// The connection through which a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Through,
}

/// Runs a suite on a new server, without any objects of an earlier run.
async fn run(suite: &Suite, way: Way, only: Option<&BTreeSet<String>>) -> Result<Outcomes, String> {
    let server = PrivateServer::builder()
        .binaries(Binaries::find().unwrap())
        .label("conformance")
        .setting("max_prepared_transactions", "20")
        .start()
        .map_err(|error| error.to_string())?;
    connect(&config(server.port()))
        .await
        .batch_execute(&format!("create database {DATABASE}"))
        .await
        .unwrap();
    if let Some(setup) = suite.setup() {
        connect(config(server.port()).dbname(DATABASE)).await.batch_execute(&setup).await.unwrap();
    }
    if way == Way::Direct {
        return suite.run(server.port(), DATABASE, only);
    }
    let gateway = Gateway::in_front_of(&server.url().to_string(), &[]);
    let outcomes = suite.run(gateway.port(), DATABASE, only);
    assert!(!gateway.log().contains("panicked"), "the gateway panicked:\n{}", gateway.log());
    outcomes
}

/// Runs a test alone both ways, several times. A test is fickle unless it fails only through the gateway each time.
async fn is_fickle(suite: &Suite, test: &str) -> Result<bool, String> {
    let only = BTreeSet::from([test.to_owned()]);
    for _ in 0..ROUNDS {
        let through = run(suite, Way::Through, Some(&only)).await?;
        if through.get(test) == Some(&Outcome::Passed) {
            return Ok(true);
        }
        let direct = run(suite, Way::Direct, Some(&only)).await?;
        if only_through(&direct, &through).is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn judge(suite: &Suite, exceptions: &Exceptions) -> Result<Comparison, String> {
    suite.prepare()?;
    eprintln!("{}: direct", suite.name);
    let direct = run(suite, Way::Direct, None).await?;
    if direct.values().all(|outcome| *outcome != Outcome::Passed) {
        return Err(format!("no test of {} passes, even directly", suite.name));
    }
    eprintln!("{}: through the gateway", suite.name);
    let through = run(suite, Way::Through, None).await?;
    let mut fickle = BTreeSet::new();
    let unknown = only_through(&direct, &through).into_iter();
    let unknown = unknown.filter(|(test, _)| exceptions.reason(&suite.name, test).is_none());
    for (test, _) in unknown.take(RETRIES_MAX) {
        eprintln!("{}: again {test}", suite.name);
        if is_fickle(suite, &test).await? {
            fickle.insert(test);
        }
    }
    Ok(compare(&suite.name, (&direct, &through), &fickle, exceptions))
}

/// Judges all suites, in the order of the list.
fn judge_all(suites: &[Suite], exceptions: &Exceptions) -> Vec<Result<Comparison, String>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(suite) = suites.get(index) else { break };
                    let result = runtime.block_on(judge(suite, exceptions));
                    results.lock().unwrap().push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(suite::folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All suites, or those that $SUITES names, or the quick ones if $QUICK is set.
fn chosen(suites: Vec<Suite>) -> Vec<Suite> {
    let named = std::env::var("SUITES").unwrap_or_default();
    let named: Vec<&str> = named.split_whitespace().collect();
    let quick = std::env::var("QUICK").is_ok_and(|quick| !quick.is_empty());
    let unknown = named.iter().find(|name| suites.iter().all(|suite| suite.name != **name));
    assert!(unknown.is_none(), "unknown suite {unknown:?}");
    let is_chosen = |suite: &Suite| match named.is_empty() {
        true => suite.quick || !quick,
        false => named.contains(&suite.name.as_str()),
    };
    suites.into_iter().filter(is_chosen).collect()
}

#[test]
fn nothing_fails_only_through_the_gateway() {
    let exceptions: Exceptions = toml::from_str(&read("exceptions.toml")).unwrap();
    let suites: Suites = toml::from_str(&read("suites.toml")).unwrap();
    let stray =
        exceptions.suites().into_iter().find(|name| suites.suite.iter().all(|suite| suite.name != *name));
    assert!(stray.is_none(), "exceptions for an unknown suite: {stray:?}");
    let mut report = Report {
        date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        hotrow: env!("CARGO_PKG_VERSION"),
        server: format!("PostgreSQL {}", Binaries::find().unwrap().version()),
        suites: Vec::new(),
    };
    let mut faults = Vec::new();
    let chosen = chosen(suites.suite);
    for (result, suite) in judge_all(&chosen, &exceptions).into_iter().zip(chosen) {
        match result {
            Ok(comparison) => {
                faults.extend(comparison.faults().map(|fault| format!("{}: {fault}", suite.name)));
                report.suites.push(Section { name: suite.name, what: suite.what, comparison });
            }
            Err(error) => faults.push(format!("{}: {error}", suite.name)),
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/conformance");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("report.md"), report.markdown()).unwrap();
    std::fs::write(folder.join("report.json"), serde_json::to_string_pretty(&report).unwrap()).unwrap();
    eprintln!("{}\nalso in {}", report.markdown(), folder.join("report.json").display());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
