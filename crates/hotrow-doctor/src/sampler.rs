//! One run of the doctor on a server: samples, the rows behind the locks, counters, and the gateway's decisions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use tokio_postgres::Statement as Prepared;

use crate::error::Error;
use crate::recorder::Recorder;
use crate::recording::{Recording, Table};
use crate::sample::Sample;
use crate::server::Server;

/// Tables whose rows are read.
const TABLES_MAX: usize = 20;
/// Tables that are read after one sample.
const READS_PER_SAMPLE: usize = 2;
/// Reads of a table without a hit after which its most contended page is read as well.
const READS_WITHOUT_HIT: u32 = 3;

/// A table with rows that sessions wait for.
struct Hot {
    table: Table,
    read: Option<Prepared>,
    misses: u32,
}

/// Records a server for this long.
pub async fn record(url: &str, length: Duration, interval: Duration) -> Result<Recording, Error> {
    let mut server = Server::connect(url).await?;
    let before = server.counters().await?;
    let mut recorder = Recorder::new(interval);
    let mut hot = HashMap::new();
    let end = Instant::now() + length;
    loop {
        let own = server.own;
        if let Some(mut sample) = server.sample().await? {
            read_rows(&mut server, &mut hot, &mut sample).await?;
            recorder.add(sample);
        }
        let pause = recorder.pause(server.own - own);
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
    let after = server.counters().await?;
    let samples = recorder.samples.iter();
    let others: BTreeSet<u32> = samples
        .flat_map(|sample| &sample.locks)
        .filter(|lock| !lock.granted)
        .filter_map(|lock| lock.relation)
        .collect();
    let unknown: Vec<u32> =
        others.into_iter().filter(|oid| !hot.contains_key(oid)).take(TABLES_MAX).collect();
    let mut tables: Vec<Table> = hot.into_values().map(|hot: Hot| hot.table).collect();
    if !unknown.is_empty() {
        tables.extend(server.tables(&unknown).await?);
    }
    let mut recording = Recording {
        abilities: server.abilities,
        samples: std::mem::take(&mut recorder.samples),
        before,
        after,
        tables,
        own_ms: recorder.work.as_secs_f64() * 1e3,
        ..Recording::default()
    };
    take_statements(&mut recorder, &mut recording);
    Ok(recording)
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
    for now in &recording.after.statements {
        let work = now.since(before.get(&(&now.id, &now.query)).copied());
        let Some(query) = now.query.as_deref().filter(|_| work.calls > 0) else { continue };
        let shape = query.trim().trim_end_matches(';').trim_end();
        // The server's text has parameters in place of constants, so the types of the two can differ.
        let known =
            recorder.statements.iter().position(|known| known.shape == shape && known.counters.is_none());
        let index = known.or_else(|| recorder.statement(query).0);
        if let Some(statement) = index.and_then(|index| recorder.statements.get_mut(index)) {
            statement.id = work.id.clone();
            statement.counters = Some(work);
        }
    }
    recording.statements = std::mem::take(&mut recorder.statements);
}
