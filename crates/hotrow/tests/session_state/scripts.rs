//! Short scripts of two sessions, run directly and through the gateway: every answer must be the same. The scripts use
//! prepared transactions, large objects, cursors, encodings and locks.

use hotrow_testkit::{config_in, connect, server, sqlstate};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::Stage;

/// The statements of a script, each with its session, `a` or `b`.
type Script = &'static [(char, &'static str)];

const TWO_PHASE: Script = &[
    ('a', "begin; update t set n = 7 where id = 1; prepare transaction 'later'"),
    ('a', "select n from t where id = 1"),
    ('b', "select n from t where id = 1"),
    ('a', "update t set n = n + 1 where id = 2 returning n"),
    ('b', "select gid from pg_prepared_xacts where gid = 'later'"),
    ('b', "commit prepared 'later'"),
    ('a', "update t set n = n + 1 where id = 1 returning n"),
    ('a', "commit prepared 'later'"),
    ('b', "begin"),
    ('b', "update t set n = 9 where id = 2"),
    ('b', "prepare transaction 'never'"),
    ('a', "rollback prepared 'never'"),
    ('a', "begin"),
    ('a', "rollback prepared 'never'"),
    ('a', "prepare transaction 'failed'"),
    ('a', "select id, n from t order by id"),
];

const LARGE_OBJECTS: Script = &[
    ('a', "select lo_from_bytea(424242, 'first words')"),
    ('b', "select convert_from(lo_get(424242), 'UTF8')"),
    ('a', "begin"),
    ('a', "select lo_open(424242, x'60000'::int)"),
    ('a', "select lo_lseek(0, 6, 0)"),
    ('a', "select lowrite(0, 'thoughts')"),
    ('a', "select lo_tell(0)"),
    ('b', "select convert_from(lo_get(424242), 'UTF8')"),
    ('a', "commit"),
    ('a', "select loread(0, 5)"),
    ('b', "select convert_from(lo_get(424242), 'UTF8')"),
    ('b', "select lo_put(424242, 0, 'F')"),
    (
        'b',
        "begin; select lo_open(424242, x'40000'::int); select convert_from(loread(0, 100), 'UTF8'); commit",
    ),
    ('a', "select lo_unlink(424242)"),
    ('b', "select lo_get(424242)"),
];

const CURSORS: Script = &[
    ('a', "begin"),
    ('a', "declare kept scroll cursor with hold for select generate_series(1, 10)"),
    ('a', "declare lost cursor for select id from t"),
    ('a', "fetch 2 kept"),
    ('a', "commit"),
    ('a', "update t set n = n + 1 where id = 1 returning n"),
    ('a', "fetch 2 kept"),
    ('a', "fetch lost"),
    ('b', "fetch kept"),
    ('a', "fetch backward 1 kept"),
    ('a', "move last kept"),
    ('a', "close kept"),
    ('a', "fetch kept"),
];

const STATEMENTS: Script = &[
    ('a', "prepare more (int) as update t set n = n + $1 where id = 2 returning n"),
    ('a', "execute more (3)"),
    ('a', "execute more (4)"),
    ('b', "execute more (1)"),
    ('a', "prepare more as select 1"),
    ('a', "begin; execute more (1); rollback"),
    ('a', "execute more (0)"),
    ('a', "deallocate more"),
    ('a', "execute more (1)"),
];

const SETTINGS: Script = &[
    ('a', "set client_encoding = 'LATIN1'"),
    ('a', "show client_encoding"),
    ('b', "show client_encoding"),
    ('a', "reset client_encoding"),
    ('a', "begin; set local work_mem = '3MB'; show work_mem; commit"),
    ('a', "show work_mem"),
    ('a', "begin; set work_mem = '3MB'; rollback; show work_mem"),
    ('a', "set datestyle = 'German'"),
    ('a', "select date '2026-11-22'"),
    ('b', "select date '2026-11-22'"),
    ('a', "reset all"),
    ('a', "select date '2026-11-22'"),
];

const LOCKS: Script = &[
    ('a', "select pg_advisory_lock(990)"),
    ('b', "select pg_try_advisory_lock(990)"),
    ('a', "update t set n = n + 1 where id = 1 returning n"),
    ('b', "select pg_try_advisory_lock_shared(990)"),
    ('a', "select pg_advisory_unlock(990)"),
    ('b', "select pg_try_advisory_lock(990)"),
    ('a', "select pg_advisory_unlock(990)"),
    ('b', "select pg_advisory_unlock_all()"),
    ('a', "begin; select pg_advisory_xact_lock(990); commit"),
    ('b', "select pg_try_advisory_xact_lock(990)"),
];

/// The answer to a statement: rows and tags, or the error's code and message.
async fn answer(client: &Client, sql: &str) -> Vec<String> {
    let shown = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            format!("{:?}", (0..row.len()).map(|n| row.get(n)).collect::<Vec<_>>())
        }
        SimpleQueryMessage::CommandComplete(count) => format!("{count} done"),
        _ => String::new(),
    };
    match client.simple_query(sql).await {
        Ok(messages) => messages.iter().map(shown).collect(),
        Err(error) => vec![sqlstate(&error).to_owned(), error.as_db_error().unwrap().message().to_owned()],
    }
}

/// All answers of a script at one port, with the table's initial rows.
async fn play(stage: &Stage, port: u16, script: Script) -> Vec<(char, &'static str, Vec<String>)> {
    stage.direct.batch_execute("truncate t; insert into t values (1, 0), (2, 0)").await.unwrap();
    let config = config_in(port, &stage.schema);
    let (a, b) = (connect(&config).await, connect(&config).await);
    let mut answers = Vec::new();
    for (session, sql) in script {
        answers.push((*session, *sql, answer(if *session == 'a' { &a } else { &b }, sql).await));
    }
    answers
}

#[tokio::test]
async fn sessions_get_the_answers_of_direct_connections() {
    let stage = Stage::new(&[]).await;
    for script in [TWO_PHASE, LARGE_OBJECTS, CURSORS, STATEMENTS, SETTINGS, LOCKS] {
        let directly = play(&stage, server().port(), script).await;
        let through = play(&stage, stage.gateway.port(), script).await;
        for (directly, through) in directly.iter().zip(&through) {
            assert_eq!(through, directly);
        }
    }
    assert!(stage.gateway.metric("packed_units_total") > 1, "packable statements of the scripts are packed");
}
