//! One run on a MariaDB server: samples and counters, and then the facts about the tables that were seen.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hotrow_mysql_client::Upstream;
use hotrow_mysql_core::reader;

use crate::mariadb::error::Error;
use crate::mariadb::recording::{Counters, Facts, Recorder, Recording, TableName};
use crate::mariadb::server::Server;
use crate::mariadb::texts;
use crate::samples::Took;

/// The shortest time between samples. The server shows the same locks again until nobody has asked for them for a tenth of a second.
const INTERVAL_MIN: Duration = Duration::from_millis(150);
/// Tables and indexes about which the server is asked, and the time after which it is asked no more.
const TABLES_MAX: usize = 50;
const FACTS_TIME_MAX: Duration = Duration::from_secs(10);

/// Records a server for this long. If the connection is lost after the first sample, the recording ends there and says so.
pub async fn record(upstream: &Upstream, length: Duration, interval: Duration) -> Result<Recording, Error> {
    let mut server = Server::connect(upstream).await?;
    let mut recorder = Recorder::new(interval.max(INTERVAL_MIN));
    let before = server.counters().await?;
    let begun = Instant::now();
    let sampled = sample(&mut server, &mut recorder, begun + length).await;
    let seconds = begun.elapsed().as_secs_f64();
    let after = match sampled {
        Ok(()) => server.counters().await,
        Err(error) => Err(error),
    };
    let (after, lost) = match after {
        Ok(after) => (after, None),
        Err(Error::Lost { source, .. }) if !recorder.samples.kept.is_empty() => {
            (Counters::new(), Some(source.to_string()))
        }
        Err(error) => return Err(error),
    };
    let mut recording = Recording {
        address: upstream.to_string(),
        abilities: server.abilities.clone(),
        samples: recorder.samples.kept,
        before,
        after,
        seconds,
        statements: recorder.statements,
        own_seconds: recorder.samples.work.as_secs_f64(),
        lost,
        ..Recording::default()
    };
    if recording.lost.is_none() {
        read_facts(&mut server, &mut recording).await?;
    }
    Ok(recording)
}

/// What the verdict on one statement needs, without a sample.
pub async fn about(upstream: &Upstream, sql: &str) -> Result<Recording, Error> {
    let mut server = Server::connect(upstream).await?;
    let mut recorder = Recorder::new(INTERVAL_MIN);
    recorder.statement(server.abilities.database.clone(), sql, false);
    let mut recording = Recording {
        address: upstream.to_string(),
        abilities: server.abilities.clone(),
        statements: recorder.statements,
        ..Recording::default()
    };
    read_facts(&mut server, &mut recording).await?;
    Ok(recording)
}

/// Takes samples until the end.
async fn sample(server: &mut Server, recorder: &mut Recorder, end: Instant) -> Result<(), Error> {
    loop {
        let (own, begun) = (server.own, Instant::now());
        if let Some(sample) = server.sample(recorder).await? {
            recorder.samples.add(sample);
        }
        let pause = recorder.samples.pause(Took { server: server.own - own, total: begun.elapsed() });
        if Instant::now() + pause >= end {
            tokio::time::sleep_until(end.into()).await;
            return Ok(());
        }
        tokio::time::sleep(pause).await;
    }
}

/// Reads the facts about the tables of rows that were waited for, and of statements that can be packed. What cannot be read in time
/// is left out.
async fn read_facts(server: &mut Server, recording: &mut Recording) -> Result<(), Error> {
    let end = Instant::now() + FACTS_TIME_MAX;
    let locks = recording.samples.iter().flat_map(|sample| &sample.locks);
    let mut indexes: BTreeSet<(TableName, String)> =
        locks.filter_map(|lock| Some((lock.table.clone()?, lock.index.clone()?))).collect();
    let mut tables: BTreeSet<TableName> = indexes.iter().map(|(table, _)| table.clone()).collect();
    while indexes.len() > TABLES_MAX {
        indexes.pop_last();
    }
    let statements = recording.statements.iter();
    tables.extend(statements.filter_map(|one| table_of(&one.example, one.database.as_deref())));
    for (table, index) in indexes {
        if Instant::now() < end {
            let columns = server.index(&table, &index).await?;
            recording.indexes.insert((table, index), columns);
        }
    }
    let mut by_routine = recording.abilities.routines.contains("definition");
    for table in tables.into_iter().take(TABLES_MAX) {
        if Instant::now() >= end {
            break;
        }
        if let Some(facts) = facts(server, &table, &mut by_routine).await? {
            recording.tables.insert(table, facts);
        }
    }
    Ok(())
}

/// None if the server refuses the question, for example because it takes long.
async fn facts(
    server: &mut Server,
    table: &TableName,
    by_routine: &mut bool,
) -> Result<Option<Facts>, Error> {
    let mut answer = server.facts(table, *by_routine).await;
    if *by_routine && matches!(answer, Err(Error::Query { .. })) {
        *by_routine = false; // the account sees the routine, and cannot call it
        answer = server.facts(table, false).await;
    }
    match answer {
        Err(Error::Query { .. }) => Ok(None),
        facts => facts.map(Some),
    }
}

/// The table of a statement that can be packed.
fn table_of(text: &str, database: Option<&str>) -> Option<TableName> {
    let text = texts::with_values(text).into_iter().next()?;
    let statement = reader::read(&text)?;
    let database = statement.database.or(database)?.to_owned();
    Some(TableName { database, table: statement.table.to_owned() })
}
