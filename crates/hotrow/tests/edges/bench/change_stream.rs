//! The payments' change stream (examples/payments/cdc): outbox rows written through the gateway reach Kafka by
//! Debezium. All of them arrive, also when Kafka Connect and the server are killed. The test needs Java and Maven, and
//! reports if they are missing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, free_port, until, value};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::sleep;
use tokio_postgres::{Client, Config};

/// For steps that start a Java program: seconds, or a minute on a busy machine.
const JAVA_PATIENCE: Duration = Duration::from_secs(180);
const WRITERS: usize = 8;
const KILLS: usize = 3;
/// Errors that a writer may get when the server is killed.
const LOST: [&str; 4] = ["08007", "08006", "57P01", "57P03"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/payments/cdc").canonicalize().unwrap()
}

/// Whether the stream's programs are installed. Prints to stderr directly, because the output of a passing test is not
/// shown.
#[expect(clippy::explicit_write, reason = "macros in a passing test print nothing visible")]
fn java_is_here() -> bool {
    let answers =
        |program: &str| Command::new(program).arg("-version").output().is_ok_and(|out| out.status.success());
    let missing: Vec<_> = ["java", "mvn"].into_iter().filter(|program| !answers(program)).collect();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join(" and ");
    writeln!(std::io::stderr(), "tests/edges/bench/change_stream was not run: this machine has no {missing}")
        .unwrap();
    false
}

/// Kafka and Connect, run by the script in front of a server. They stop when their input ends, also when this program
/// ends.
struct Stream {
    script: Child,
    ports: [u16; 3],
    folder: tempfile::TempDir,
}

impl Stream {
    fn fetch() {
        let fetched = Command::new("./cdc.sh").arg("fetch").current_dir(folder()).output().unwrap();
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    }

    fn start(server: &PrivateServer) -> Self {
        let ports = [free_port(), free_port(), free_port()];
        let run = tempfile::tempdir().unwrap();
        let script = script(ports)
            .arg("run")
            .arg(run.path())
            .env("PGPORT", server.port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { script, ports, folder: run }
    }

    /// Waits until the stream is ready for the first event.
    fn streams(&mut self) {
        let mut line = String::new();
        BufReader::new(self.script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("streaming: "), "{line}{}", self.logs());
    }

    /// Connect's process, once there is one other than `before`.
    async fn connect_process(&mut self, before: i32) -> i32 {
        let deadline = Instant::now() + JAVA_PATIENCE;
        loop {
            let ended = self.script.try_wait().unwrap();
            assert!(ended.is_none(), "cdc.sh has ended, its reason is on stderr:\n{}", self.logs());
            let noted = std::fs::read_to_string(self.folder.path().join("connect.pid")).unwrap_or_default();
            match noted.trim().parse() {
                Ok(process) if process != before => return process,
                _ => assert!(Instant::now() < deadline, "Connect is not started:\n{}", self.logs()),
            }
            sleep(Duration::from_millis(20)).await; // the condition has no signal
        }
    }

    /// The lines of the consumer, which shows `wanted` events.
    fn events(&self, wanted: usize) -> Vec<String> {
        let mut consumer = script(self.ports)
            .args(["consume", &wanted.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let process = Pid::from_raw(consumer.id().cast_signed());
        let done = Arc::new(AtomicBool::new(false));
        let still = done.clone();
        let watch = std::thread::spawn(move || {
            let deadline = Instant::now() + JAVA_PATIENCE;
            while !still.load(Relaxed) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50)); // this thread only enforces a time limit
            }
            if !still.load(Relaxed) {
                kill(process, Signal::SIGKILL).unwrap();
            }
        });
        let lines: Vec<_> =
            BufReader::new(consumer.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
        done.store(true, Relaxed);
        watch.join().unwrap();
        let ended = consumer.wait_with_output().unwrap();
        eprintln!("{}", String::from_utf8_lossy(&ended.stderr));
        assert!(
            ended.status.success(),
            "{} of {wanted} events arrived\n{}{}",
            lines.len(),
            String::from_utf8_lossy(&ended.stderr),
            self.logs()
        );
        lines
    }

    fn logs(&self) -> String {
        let end = |name: &str| {
            let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(30)..].join("\n"))
        };
        ["kafka.out", "kafka.log", "connect.out", "connect.log"].map(end).concat()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

fn script(ports: [u16; 3]) -> Command {
    let mut script = Command::new("./cdc.sh");
    let names = ["KAFKA_PORT", "CONTROLLER_PORT", "CONNECT_PORT"];
    script.current_dir(folder()).envs(names.into_iter().zip(ports.map(|port| port.to_string())));
    script
}

/// Creates the service's tables, and runs the operator's file, one statement at a time as psql does.
async fn prepare(server: &Client) {
    let schema = std::fs::read_to_string(folder().join("../sql/schema.sql")).unwrap();
    server.batch_execute(&schema).await.unwrap();
    server.batch_execute("create table payments.other (id int)").await.unwrap();
    let file = std::fs::read_to_string(folder().join("slot.sql")).unwrap();
    for statement in file.split(';').filter(|statement| statement.contains("create")) {
        server.batch_execute(statement).await.unwrap();
    }
}

/// Writes events of one payment, numbered, each through the gateway, until it is told to stop. If the server is killed,
/// the outcome of the last one may be unknown, and the next one follows. Returns the acknowledged events.
async fn write(gateway: Config, writer: usize, stop: Arc<AtomicBool>) -> Vec<i32> {
    let mut client = connect(&gateway).await;
    let mut acknowledged = Vec::new();
    for number in 1_i32.. {
        if stop.load(Relaxed) {
            break;
        }
        let insert = format!(
            "insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
             values (gen_random_uuid(), 'payment', 'p{writer}', 'payment.changed', jsonb_build_object('number', {number}))"
        );
        match client.simple_query(&insert).await {
            Ok(_) => acknowledged.push(number),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                assert!(code.as_deref().is_none_or(|code| LOST.contains(&code)), "{error:?}");
                while client.is_closed() {
                    match hotrow_testkit::try_connect(&gateway).await {
                        Ok(again) => client = again,
                        Err(_) => sleep(Duration::from_millis(20)).await, // the gateway has not found the server yet
                    }
                }
            }
        }
        // A slow stream: it has to be running when Connect is killed, and be read to its end afterwards.
        sleep(Duration::from_millis(20)).await;
    }
    acknowledged
}

/// Waits until Connect reads from the slot.
async fn is_read(server: &PrivateServer, stream: &Stream) -> Client {
    let direct = connect(&config(server.port())).await;
    let deadline = Instant::now() + JAVA_PATIENCE;
    while value(&direct, "select active from pg_replication_slots").await != "t" {
        assert!(Instant::now() < deadline, "Connect does not use the slot:\n{}", stream.logs());
        sleep(Duration::from_millis(10)).await; // the condition has no signal
    }
    direct
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make test-all"]
async fn every_event_arrives_whenever_connect_or_the_server_is_killed() {
    if !java_is_here() {
        return;
    }
    Stream::fetch();
    let start = || PrivateServer::builder().label("cdc").setting("wal_level", "logical").start().unwrap();
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let direct = connect(&config(server.port())).await;
    prepare(&direct).await;

    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        writers.push(tokio::spawn(write(gateway.config(), writer, stop.clone())));
    }
    let mut stream = Stream::start(&server);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut connect_process = 0;
    for number in 0..KILLS {
        connect_process = stream.connect_process(connect_process).await;
        is_read(&server, &stream).await;
        if number == 1 {
            sleep(Duration::from_millis(random.u64(0..1_000))).await; // the moment is random
            server.kill_dash_nine().unwrap();
            server.restart().unwrap();
            is_read(&server, &stream).await;
        }
        // The first kill comes before Connect has stored an offset, the others in the middle of the
        // stream, before or after it stores one.
        sleep(Duration::from_millis(if number == 0 { 0 } else { random.u64(0..2_500) })).await;
        kill(Pid::from_raw(connect_process), Signal::SIGKILL).unwrap();
    }
    stream.streams();
    stop.store(true, Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.push(writer.await.unwrap());
    }

    let direct = connect(&config(server.port())).await;
    let written = hotrow_testkit::rows(&direct, "select id from payments.outbox").await.unwrap();
    let written: BTreeSet<String> = written.into_iter().map(|mut row| row.remove(0).unwrap()).collect();
    assert!(written.len() > WRITERS * 20, "only {} events were written", written.len());
    let events = stream.events(written.len());
    let arrived: BTreeSet<String> =
        events.iter().map(|event| event.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(arrived, written, "exactly the outbox's events");
    assert_eq!(arrived.len(), events.len(), "each event is shown once");
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        let numbers = events
            .iter()
            .filter(|event| event.contains(&format!("\tpayment/p{writer}\t")))
            .map(|event| event.rsplit_once("\"number\": ").unwrap().1.trim_end_matches('}').parse().unwrap());
        let numbers: Vec<i32> = numbers.collect();
        assert!(numbers.is_sorted() && numbers.first() == Some(&1), "p{writer}: {numbers:?}");
        let missing: Vec<_> = acknowledged.iter().filter(|number| !numbers.contains(number)).collect();
        assert!(missing.is_empty(), "p{writer} got acknowledgements for {missing:?}");
    }

    // A table outside the publication must not make the slot keep the server's log.
    direct.batch_execute("insert into payments.other select generate_series(1, 1000)").await.unwrap();
    let now = value(&direct, "select pg_current_wal_lsn()").await;
    let confirmed = format!("select confirmed_flush_lsn >= '{now}' from pg_replication_slots");
    until("the slot has moved on", async || value(&direct, &confirmed).await == "t").await;
}
