//! Functions that work without TLS also work with it: much data in both directions, long pipelines, cancel requests.

use std::io::{Read, Write};
use std::net::Shutdown;

use hotrow_testkit::raw::{bind, execute, parse, query, sync};
use hotrow_testkit::{until, value};

use crate::tls::Stage;
use crate::tls::client::Client;
use crate::tls::clients::psql;

#[tokio::test]
#[ignore = "long: make test-all"]
async fn fifty_megabytes_are_copied_in_and_out() {
    let stage = Stage::new(&[]).await;
    stage.direct.batch_execute("create table wide (id int primary key, text text)").await.unwrap();
    let (file, back) = (stage.path("in"), stage.path("out"));
    let mut random = fastrand::Rng::with_seed(50);
    let lines: String = (0..50_000)
        .map(|id| {
            format!(
                "{id}\t{}\n",
                std::iter::repeat_with(|| random.alphanumeric()).take(1_060).collect::<String>()
            )
        })
        .collect();
    assert!(lines.len() > 50 << 20);
    std::fs::write(&file, &lines).unwrap();
    let options = format!("-c search_path={}", stage.schema);
    let variables = [("PGSSLMODE", "require"), ("PGOPTIONS", options.as_str())];
    let output = psql(stage.gateway.port(), &variables, &format!("\\copy wide from {file}"));
    assert!(output.contains("SSL connection"), "{output}");
    assert_eq!(value(&stage.direct, "select count(*) from wide").await, "50000");
    let output =
        psql(stage.gateway.port(), &variables, &format!("\\copy (select * from wide order by id) to {back}"));
    assert!(output.contains("SSL connection"), "{output}");
    assert!(std::fs::read_to_string(&back).unwrap() == lines, "the copied file is unchanged");
}

#[tokio::test]
async fn a_pipeline_of_ten_thousand_statements_is_answered_in_order() {
    let stage = Stage::new(&["--queue-wait-ms", "60000"]).await; // the machine may be busy
    let mut client = stage.client();
    client.send(&[parse("add", "update t set n = n + 1 where id = $1 returning n"), sync()].concat());
    client.until_ready();
    let call = [bind("", "add", &[Some("1")]), execute("", 0), sync()].concat();
    let all = call.repeat(10_000);
    // Nothing is read in the meantime: the gateway has to bound both the sent and the received data.
    let pieces: Vec<_> = all.chunks(900_000).collect();
    client.send(pieces[0]);
    for number in 0..10_000 {
        if number == 5_000 {
            pieces[1..].iter().for_each(|piece| client.send(piece));
        }
        let replies = client.until_ready();
        let row = replies.iter().find(|message| message.tag == b'D').unwrap_or_else(|| panic!("{replies:?}"));
        assert_eq!(row.values()[0].clone().unwrap(), (number + 1).to_string().into_bytes());
    }
    assert_eq!(value(&stage.direct, "select sum(n) from t").await, "10000");
}

#[tokio::test]
async fn a_client_that_reads_late_gets_every_byte() {
    let stage = Stage::new(&[]).await;
    let mut client = stage.client();
    client.send(&query("select repeat('x', 1000000) from generate_series(1, 60)"));
    until("the server waits for the client", async || {
        let waiting = "select count(*) from pg_stat_activity where wait_event = 'ClientWrite'";
        value(&stage.direct, waiting).await == "1"
    })
    .await;
    let replies = client.until_ready();
    assert_eq!(replies.iter().filter(|message| message.tag == b'D').count(), 60);
    let rows: usize = replies.iter().map(|message| message.body.len()).sum();
    assert!(rows > 60_000_000);
    assert_eq!(client.value("select 'still here'"), "still here");
}

#[tokio::test]
async fn a_cancel_request_can_be_sent_under_tls() {
    let stage = Stage::new(&[]).await;
    for direct in [false, true] {
        let mut sleeper = stage.client();
        sleeper.send(&query("select pg_sleep(60)"));
        let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        until("the statement sleeps", async || value(&stage.direct, asleep).await == "1").await;
        let begin = if direct { Client::direct } else { Client::request_tls };
        let mut cancel = begin(stage.gateway.port(), stage.authority.trust()).unwrap();
        cancel.send(&[&[0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e][..], &sleeper.key].concat());
        assert!(matches!(cancel.message(), Ok(None)), "no reply, and the close_notify of TLS");
        let replies = sleeper.until_ready();
        let error = replies.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.field(b'C').as_deref(), Some("57014"));
    }
}

#[tokio::test]
async fn a_client_that_stops_sending_gets_its_answer_and_a_close_notify() {
    let stage = Stage::new(&[]).await;
    let mut client = stage.client();
    client.send(&query("update t set n = 7 where id = 7 returning n"));
    let stream = client.halves();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    stream.sock.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end is announced by close_notify");
    assert!(rest.ends_with(b"Z\0\0\0\x05I"), "{}", rest.escape_ascii());
}
