//! Small recordings: sessions, locks and rows by a few words.

use crate::recording::{Abilities, RecordedVerdict, Recording, Statement, Table, UniqueKey};
use crate::sample::{Lock, RowSeen, Sample, Session};

pub const TABLE: u32 = 20_000;
const DATABASE: u32 = 5;

/// A recording of these samples, half a second apart. Its table `item` has the keys `id` and `name`.
pub fn recording(samples: impl IntoIterator<Item = Sample>) -> Recording {
    let key = |column: &str| UniqueKey { columns: vec![column.into()] };
    let mut samples: Vec<Sample> = samples.into_iter().collect();
    for (place, sample) in samples.iter_mut().enumerate() {
        sample.at_us = 10_000_000 + 500_000 * i64::try_from(place).unwrap();
    }
    let abilities = Abilities {
        version: 150_000,
        database: "shop".into(),
        database_oid: DATABASE,
        role: "monitor".into(),
        sees_sessions: true,
        tracks_activities: "on".into(),
        ..Abilities::default()
    };
    let table = Table {
        oid: TABLE,
        schema: "public".into(),
        name: "item".into(),
        readable: true,
        trusted: true,
        keys: vec![key("id"), key("name")],
        ..Table::default()
    };
    Recording {
        abilities,
        samples,
        tables: vec![table],
        statements: vec![update("id")],
        ..Recording::default()
    }
}

/// An update by this key, which the gateway packs.
pub fn update(column: &str) -> Statement {
    let verdict = RecordedVerdict {
        name: "packed".into(),
        key: vec![(column.into(), Some(0))],
        ..RecordedVerdict::default()
    };
    Statement {
        shape: format!("update item set n = 1 where {column} = $1"),
        verdict: Some(verdict),
        ..Statement::default()
    }
}

/// A session that waits for nothing. Its transaction began before the first sample.
pub fn session(pid: i32, state: &str) -> Session {
    Session {
        pid,
        database: Some("shop".into()),
        kind: Some("client backend".into()),
        state: Some(state.into()),
        xact_us: Some(1_000_000 + i64::from(pid)),
        query_us: Some(1_000_000),
        changed_us: Some(2_000_000),
        statement: Some(0),
        ..Session::default()
    }
}

/// A session that waits for a row.
pub fn waiting(pid: i32, wait: &str) -> Session {
    Session { wait_type: Some("Lock".into()), wait: Some(wait.into()), ..session(pid, "active") }
}

/// A lock of a row's version.
pub fn tuple(pid: i32, place: u32, mode: &str, granted: bool) -> Lock {
    Lock {
        kind: "tuple".into(),
        database: Some(DATABASE),
        relation: Some(TABLE),
        page: Some(place / 100),
        tuple: Some(place % 100),
        pid: Some(pid),
        mode: mode.into(),
        granted,
        ..Lock::default()
    }
}

/// A lock of a transaction, held by a session or by a prepared transaction.
pub fn transaction(pid: Option<i32>, id: &str, granted: bool) -> Lock {
    let mode = if granted { "ExclusiveLock" } else { "ShareLock" };
    Lock {
        kind: "transactionid".into(),
        transaction: Some(id.into()),
        pid,
        mode: mode.into(),
        granted,
        ..Lock::default()
    }
}

/// A crowd: session 1 holds the row, 2 is the next, 3 and the others are behind it.
pub fn crowd(holder: Session, place: u32, mode: &str) -> Sample {
    let first = holder.pid;
    let mut sample = Sample {
        sessions: vec![holder, waiting(first + 1, "transactionid")],
        locks: vec![
            transaction(Some(first), "900", true),
            transaction(Some(first + 1), "900", false),
            tuple(first + 1, place, mode, true),
        ],
        ..Sample::default()
    };
    for pid in first + 2..first + 5 {
        sample.sessions.push(waiting(pid, "tuple"));
        sample.locks.push(tuple(pid, place, mode, false));
    }
    sample
}

/// A version that was read, with the sessions that hold or await its lock.
pub fn seen(place: u32, xmin: &str, sessions: u32, id: &str, name: &str) -> RowSeen {
    RowSeen {
        relation: TABLE,
        page: place / 100,
        tuple: place % 100,
        xmin: xmin.into(),
        sessions,
        key: vec![Some(id.into()), Some(name.into())],
    }
}
