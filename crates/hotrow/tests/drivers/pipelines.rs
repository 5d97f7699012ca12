//! Pipelined units of one session: many run at the same time, reads and writes, in the lanes of different rows. Each
//! still sees the effects of the units before it.

use futures_util::future::join_all;
use hotrow_testkit::raw::{Raw, bind, execute, parse, sync, tags};
use hotrow_testkit::{Gateway, PATIENT_LANES, connect, new_schema, sqlstate, value};

const TABLE: &str = "create table t (id int primary key, n int not null check (n >= 0));
    insert into t select id, 0 from generate_series(1, 10) id";

#[tokio::test]
async fn a_row_counts_its_pipelined_updates_in_order() {
    let (schema, direct) = new_schema().await;
    direct.batch_execute(TABLE).await.unwrap();
    let gateway = Gateway::start(&PATIENT_LANES);
    let client = connect(&gateway.config_in(&schema)).await;
    let update = client.prepare("update t set n = n + 1 where id = $1 returning n").await.unwrap();
    let answers = join_all((0..500).map(|_| client.query_one(&update, &[&1]))).await;
    let answers: Vec<i32> = answers.into_iter().map(|row| row.unwrap().get(0)).collect();
    assert_eq!(answers, (1..=500).collect::<Vec<_>>());
    assert_eq!(gateway.metric("packed_units_total"), 500);
    assert!(gateway.metric("batches_total") < 250, "a pipeline shares commits");
}

#[tokio::test]
async fn several_sessions_pipeline_on_one_row() {
    let (schema, direct) = new_schema().await;
    direct.batch_execute(TABLE).await.unwrap();
    let gateway = Gateway::start(&[]);
    let config = gateway.config_in(&schema);
    let answers = join_all((0..6).map(|_| async {
        let client = connect(&config).await;
        let update = client.prepare("update t set n = n + 1 where id = 1 returning n").await.unwrap();
        let own = join_all((0..200).map(|_| client.query_one(&update, &[]))).await;
        own.into_iter().map(|row| row.unwrap().get::<_, i32>(0)).collect::<Vec<_>>()
    }))
    .await;
    assert!(answers.iter().all(|own| own.is_sorted()), "each session's answers are in its order");
    let mut all = answers.concat();
    all.sort_unstable();
    assert_eq!(all, (1..=1200).collect::<Vec<_>>(), "each value once");
}

#[tokio::test]
async fn reads_see_earlier_writes_and_no_later_ones() {
    let (schema, direct) = new_schema().await;
    direct.batch_execute(TABLE).await.unwrap();
    let gateway = Gateway::start(&PATIENT_LANES);
    let client = connect(&gateway.config_in(&schema)).await;
    let update = client.prepare("update t set n = n + 1 where id = $1 returning n").await.unwrap();
    let read = client.prepare("select n from t where id = $1").await.unwrap();
    let all = client.prepare("select sum(n)::int from t").await.unwrap();
    // Updates and reads in several lanes, and later units that are passed through together with the units sent after
    // them.
    let kind = |step: usize| if step < 200 { step % 4 } else { step % 5 };
    let asked = (0..300_usize).map(|step| {
        let id = (1 + step * 7 % 10) as i32;
        let (client, update, read, all) = (&client, &update, &read, &all);
        async move {
            match kind(step) {
                0 | 1 => client.query_one(update, &[&id]).await,
                2 | 3 => client.query_one(read, &[&id]).await,
                _ => client.query_one(all, &[]).await,
            }
        }
    });
    let answers: Vec<i32> = join_all(asked).await.into_iter().map(|row| row.unwrap().get(0)).collect();
    let mut model = [0; 11];
    for (step, answer) in answers.into_iter().enumerate() {
        let id = 1 + step * 7 % 10;
        match kind(step) {
            0 | 1 => {
                model[id] += 1;
                assert_eq!(answer, model[id], "update {step}");
            }
            2 | 3 => assert_eq!(answer, model[id], "read {step}"),
            _ => assert_eq!(answer, model.iter().sum::<i32>(), "sum {step}"),
        }
    }
    assert!(gateway.metric("packed_units_total") >= 100 && gateway.metric("packed_reads_total") >= 100);
    assert!(gateway.metric("passed_through_units_total") >= 20);
}

#[tokio::test]
async fn a_failing_unit_does_not_affect_its_neighbours() {
    let (schema, direct) = new_schema().await;
    direct.batch_execute(TABLE).await.unwrap();
    let gateway = Gateway::start(&[]);
    let client = connect(&gateway.config_in(&schema)).await;
    let update = client.prepare("update t set n = n + $1 where id = 1 returning n").await.unwrap();
    let amounts: Vec<i32> = (0..100).map(|step| if step % 10 == 3 { -1000 } else { 1 }).collect();
    let answers = join_all(amounts.iter().map(|amount| {
        let (client, update) = (&client, &update);
        async move { client.query_one(update, &[amount]).await }
    }))
    .await;
    let mut expected = 0;
    for (step, answer) in answers.into_iter().enumerate() {
        if step % 10 == 3 {
            let error = answer.unwrap_err();
            let report = error.as_db_error().unwrap();
            assert_eq!((report.code().code(), report.constraint()), ("23514", Some("t_n_check")), "{step}");
        } else {
            expected += 1;
            assert_eq!(answer.unwrap().get::<_, i32>(0), expected, "{step}");
        }
    }
    assert_eq!(value(&direct, "select n from t where id = 1").await, "90");
}

#[tokio::test]
async fn the_answer_to_a_dropped_query_is_discarded() {
    let (schema, direct) = new_schema().await;
    direct.batch_execute(TABLE).await.unwrap();
    let gateway = Gateway::start(&[]);
    let client = connect(&gateway.config_in(&schema)).await;
    let update = client.prepare("update t set n = n + 1 where id = 1 returning n").await.unwrap();
    for round in 0..50_i32 {
        let dropped = client.query_one(&update, &[]);
        // Polled once, which sends the query, and dropped.
        let impatient = tokio::time::timeout(std::time::Duration::ZERO, dropped).await;
        drop(impatient);
        let answer: i32 = client.query_one(&update, &[]).await.unwrap().get(0);
        assert_eq!(answer, 2 * (round + 1));
    }
    let refused = client.query_one("update t set n = n / 0 where id = 2", &[]).await.unwrap_err();
    assert_eq!(sqlstate(&refused), "22012");
}

/// A RESET restores the client's name. No later unit overtakes the restoring.
#[tokio::test]
async fn units_after_a_reset_of_the_name_are_answered_after_it() {
    let gateway = Gateway::start(&[]);
    for reset in ["reset all", "discard all", "set application_name to default"] {
        let mut raw = Raw::login(gateway.port(), &[("application_name", "ann")]).await;
        raw.query("begin; commit").await;
        let once = |text: &str| [parse("", text), bind("", "", &[]), execute("", 0), sync()].concat();
        raw.send(&[once(reset), once("select pg_backend_pid()"), once("select 1 / 0")].concat()).await;
        let replies: String = tags(&raw.until_ready(3).await).replace('S', "");
        assert_eq!(replies, "12CZ12DCZ1EZ", "{reset}");
    }
}
