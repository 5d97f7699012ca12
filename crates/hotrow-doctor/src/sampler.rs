//! One run of the doctor on a server: samples, the rows behind the locks, counters, and the gateway's decisions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use hotrow_core::normalise::without_values;
use tokio_postgres::Statement as Prepared;

use crate::counters::Counters;
use crate::error::Error;
use crate::machine::Watched;
use crate::recorder::Recorder;
use crate::recording::{Lost, Recording, Table};
use crate::sample::Sample;
use crate::samples::Took;
use crate::server::{OWN, Server};

/// Tables whose rows are read.
const TABLES_MAX: usize = 20;
/// Tables that are read after one sample.
const READS_PER_SAMPLE: usize = 2;
/// Characters of a text by which statements are compared.
const SKELETON_CHARS: usize = 4_000;
/// The first characters of a skeleton, by which the doctor knows its own statements. Names of tables come later in them.
const OWN_CHARS: usize = 120;
/// Reads of a table without a hit after which its most contended page is read as well.
const READS_WITHOUT_HIT: u32 = 3;

/// Small pieces of work that are timed before the first sample. On a busy server many are interrupted, and the fastest
/// counts.
const PROBES: usize = 10;
/// Samples for each further one.
const SAMPLES_PER_PROBE: usize = 5;

/// A table with rows that sessions wait for.
struct Hot {
    table: Table,
    read: Option<Prepared>,
    misses: u32,
}

/// Records a server for this long. If the connection is lost after the first sample, the recording ends there and says
/// so: what was seen until then can be the reason.
pub async fn record(url: &str, length: Duration, interval: Duration) -> Result<Recording, Error> {
    let mut server = Server::connect(url).await?;
    let before = server.counters().await?;
    let mut recorder = Recorder::new(interval);
    let mut hot = HashMap::new();
    let mut probes = Vec::new();
    for _ in 0..PROBES {
        probes.extend(server.probe().await);
    }
    let machine = Watched::begin(server.abilities.pid);
    let begun = Instant::now();
    let sampled = sample(&mut server, &mut recorder, &mut hot, &mut probes, begun + length).await;
    let after = match sampled {
        Ok(()) => server.counters().await,
        Err(error) => Err(error),
    };
    let (after, lost) = match after {
        Ok(after) => (after, None),
        Err(Error::Lost { message, .. }) if !recorder.samples.kept.is_empty() => {
            let seconds = begun.elapsed().as_secs_f64();
            (Counters::default(), Some(Lost { seconds, message }))
        }
        Err(error) => return Err(error),
    };
    let samples = recorder.samples.kept.iter();
    let others: BTreeSet<u32> = samples
        .flat_map(|sample| &sample.locks)
        .filter(|lock| !lock.granted)
        .filter_map(|lock| lock.relation)
        .collect();
    let unknown: Vec<u32> =
        others.into_iter().filter(|oid| !hot.contains_key(oid)).take(TABLES_MAX).collect();
    let mut tables: Vec<Table> = hot.into_values().map(|hot: Hot| hot.table).collect();
    if !unknown.is_empty() && lost.is_none() {
        tables.extend(server.tables(&unknown).await?);
    }
    let mut recording = Recording {
        abilities: server.abilities,
        samples: std::mem::take(&mut recorder.samples.kept),
        before,
        after,
        tables,
        lost,
        own_queries: server.queries,
        own_ms: recorder.samples.work.as_secs_f64() * 1e3,
        probe_us: probes.into_iter().reduce(f64::min),
        machine: machine.map(Watched::end),
        ..Recording::default()
    };
    take_statements(&mut recorder, &mut recording);
    Ok(recording)
}

/// Takes samples until the end.
async fn sample(
    server: &mut Server,
    recorder: &mut Recorder,
    hot: &mut HashMap<u32, Hot>,
    probes: &mut Vec<f64>,
    end: Instant,
) -> Result<(), Error> {
    for number in 0_usize.. {
        let (own, begun) = (server.own, Instant::now());
        if let Some(mut sample) = server.sample().await? {
            let read = read_rows(server, hot, &mut sample).await;
            recorder.add(sample);
            read?;
        }
        if number.is_multiple_of(SAMPLES_PER_PROBE) {
            probes.extend(server.probe().await);
        }
        let pause = recorder.samples.pause(Took { server: server.own - own, total: begun.elapsed() });
        if Instant::now() + pause >= end {
            tokio::time::sleep_until(end.into()).await;
            break;
        }
        tokio::time::sleep(pause).await;
    }
    // The last sample ends the interval that the counters cover.
    if let Some(sample) = server.sample().await? {
        recorder.add(sample);
    }
    Ok(())
}

/// Reads the rows that sessions wait for at the moment, in the tables with the most waiting sessions.
async fn read_rows(
    server: &mut Server,
    hot: &mut HashMap<u32, Hot>,
    sample: &mut Sample,
) -> Result<(), Error> {
    let mut pages: BTreeMap<u32, BTreeMap<u32, usize>> = BTreeMap::new();
    for lock in sample.locks.iter().filter(|lock| lock.kind == "tuple") {
        if let (Some(relation), Some(page)) = (lock.relation, lock.page)
            && lock.database == Some(server.abilities.database_oid)
        {
            *pages.entry(relation).or_default().entry(page).or_default() += 1;
        }
    }
    let mut busiest: Vec<(u32, usize)> =
        pages.iter().map(|(relation, pages)| (*relation, pages.values().sum())).collect();
    busiest.sort_by_key(|(_, locks)| std::cmp::Reverse(*locks));
    for (relation, _) in busiest.into_iter().take(READS_PER_SAMPLE) {
        if !hot.contains_key(&relation) {
            if hot.len() >= TABLES_MAX {
                continue;
            }
            let Some(table) = server.tables(&[relation]).await?.pop() else { continue };
            let read = server.prepare_rows(&table).await;
            hot.insert(relation, Hot { table, read, misses: 0 });
        }
        let Some(Hot { read: Some(read), misses, .. }) = hot.get_mut(&relation) else { continue };
        let most = pages[&relation].iter().max_by_key(|(_, locks)| **locks).map(|(page, _)| *page);
        let page = most.filter(|_| *misses >= READS_WITHOUT_HIT);
        let rows = server.rows(read, relation, page).await;
        let is_hit = rows.iter().any(|row| row.sessions > 0);
        *misses = if is_hit { 0 } else { misses.saturating_add(1) };
        sample.rows.extend(rows);
    }
    Ok(())
}

/// Joins the sampled statements with the server's counters of statements.
fn take_statements(recorder: &mut Recorder, recording: &mut Recording) {
    let before: HashMap<_, _> =
        recording.before.statements.iter().map(|old| ((&old.id, &old.query), old)).collect();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (index, statement) in recorder.statements.iter().enumerate() {
        known.entry(skeleton(&statement.shape)).or_insert(index);
    }
    let beginning = |skeleton: &str| skeleton.chars().take(OWN_CHARS).collect::<String>();
    let own = OWN.map(|own| beginning(&skeleton(own)));
    for now in &recording.after.statements {
        let work = now.since(before.get(&(&now.id, &now.query)).copied());
        let Some(query) = now.query.as_deref().filter(|_| work.calls > 0) else { continue };
        let skeleton = skeleton(query);
        if own.contains(&beginning(&skeleton)) {
            continue;
        }
        let index = known.get(&skeleton).copied().or_else(|| recorder.statement(query).0);
        if let Some(statement) = index.and_then(|index| recorder.statements.get_mut(index)) {
            statement.counters = Some(work.and(statement.counters.as_ref()));
        }
    }
    recording.statements = std::mem::take(&mut recorder.statements);
}

/// A text without values and numbers of parameters. The server's texts have parameters in place of constants, with
/// other numbers than the gateway's.
fn skeleton(query: &str) -> String {
    let text = without_values(query, SKELETON_CHARS);
    let mut parts = text.split('$');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "?" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::StatementCounters;
    use crate::recording::Statement;

    #[test]
    fn counters_join_the_statement_that_was_seen() {
        let mut recorder = Recorder::new(Duration::from_millis(50));
        recorder.statements =
            vec![Statement { shape: "update t set n = n + 1 where id = $1".into(), ..Statement::default() }];
        let counted = |id: &str, query: &str, calls| StatementCounters {
            id: Some(id.into()),
            query: Some(query.into()),
            calls,
            ..StatementCounters::default()
        };
        let mut recording = Recording::default();
        recording.before.statements = vec![counted("1", "update t set n = n + $2 where id = $1", 5)];
        recording.after.statements = vec![
            counted("1", "update t set n = n + $2 where id = $1", 30),
            counted("2", "update t  set n = n + $2 where id = $1;", 10),
            counted("4", "select $1", 7),
        ];
        for (id, own) in OWN.iter().enumerate() {
            // A server can leave out the comment before a statement, and puts parameters in place of constants.
            let comment = own.lines().take_while(|line| line.starts_with("--")).count();
            let bare: Vec<&str> = own.lines().skip(comment).collect();
            let bare = bare.join("\n").replace("'epoch'", "$2").replace("1000000", "$3");
            recording.after.statements.extend([
                counted(&format!("own {id}"), own, 600),
                counted(&format!("bare {id}"), &bare, 600),
            ]);
        }
        take_statements(&mut recorder, &mut recording);
        let calls: Vec<_> = recording
            .statements
            .iter()
            .map(|statement| statement.counters.as_ref().map_or(0, |counters| counters.calls))
            .collect();
        assert_eq!(calls, [35, 7], "{:?}", recording.statements);
    }
}
