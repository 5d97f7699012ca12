//! psql, directly and through the gateway: the output must be the same byte for byte. `statements.sql` has the
//! statements.

use std::io::{Read, pipe};
use std::process::{Command, Stdio};

use hotrow_testkit::{Gateway, PATIENT_LANES, connect, needed_tool, new_schema, server, value};

fn psql(port: u16, schema: &str) -> Command {
    let mut psql = Command::new(needed_tool("psql"));
    psql.args(["-X", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres", "-p", &port.to_string()]);
    psql.env("PGOPTIONS", format!("-c search_path={schema}"))
        .env("LC_ALL", "C")
        .env("PGCLIENTENCODING", "UTF8");
    psql.stdin(Stdio::null());
    psql
}

/// Standard output and errors, in the order in which psql wrote them.
fn output(mut command: Command) -> String {
    let (mut reader, writer) = pipe().unwrap();
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command); // this closes this process's copies of the pipe's writing end
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    child.wait().unwrap();
    output
}

fn run(port: u16, schema: &str, commands: &[&str]) -> String {
    let mut psql = psql(port, schema);
    commands.iter().for_each(|command| {
        psql.args(["-c", command]);
    });
    output(psql)
}

#[tokio::test]
async fn a_script_of_statements_has_the_same_output() {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    let mut outputs = Vec::new();
    for port in [server().port(), gateway.port()] {
        direct.batch_execute(&format!("drop schema {schema} cascade; create schema {schema}")).await.unwrap();
        let mut psql = psql(port, &schema);
        psql.args(["-a", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drivers/statements.sql")]);
        outputs.push(output(psql));
    }
    let through = outputs.pop().unwrap();
    let directly = outputs.pop().unwrap();
    assert!(directly.lines().count() > 500, "the script has run: {directly}");
    for (number, (directly, through)) in directly.lines().zip(through.lines()).enumerate() {
        assert_eq!(through, directly, "line {number} of the output");
    }
    assert_eq!(through.len(), directly.len());
    let packed = gateway.metric("packed_units_total") + gateway.metric("packed_reads_total");
    assert!(packed > 25, "only {packed} of the statements were packed");
    assert!(gateway.metric("failed_units_total") > 5, "failing statements ran in a lane first");
}

#[tokio::test]
async fn several_statements_in_one_command_are_one_transaction() {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(&[]);
    direct
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .unwrap();
    let add = "update t set n = n + 1 where id = 1";
    let printed = run(
        gateway.port(),
        &schema,
        &[&format!("{add}; {add}; select n from t; {add}; select 1 / 0; {add}")],
    );
    assert!(printed.contains("ERROR:  division by zero"), "{printed}");
    assert_eq!(value(&direct, "select n from t").await, "0");
    let printed = run(gateway.port(), &schema, &[&format!("{add}; {add}"), add, "select n from t"]);
    assert!(printed.contains("UPDATE 1\nUPDATE 1\nUPDATE 1") && printed.contains(" 3\n"), "{printed}");
}

#[tokio::test]
async fn a_file_is_copied_in_and_out() {
    let (schema, direct) = new_schema().await;
    let gateway = Gateway::start(&[]);
    direct.batch_execute("create table t (id int primary key, text text)").await.unwrap();
    let folder = std::env::temp_dir().join(format!("hotrow-copy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, back) = (folder.join("in"), folder.join("out"));
    let lines: String =
        (0..20_000).map(|n| format!("{n}\tline {n} of many, wide enough to fill frames\n")).collect();
    std::fs::write(&file, &lines).unwrap();
    let printed = run(
        gateway.port(),
        &schema,
        &[
            &format!("\\copy t from {}", file.display()),
            &format!("\\copy (select * from t order by id) to {}", back.display()),
            &format!("\\copy t from {}", file.display()),
        ],
    );
    assert!(printed.contains("COPY 20000\nCOPY 20000\n") && printed.contains("t_pkey"), "{printed}");
    assert!(std::fs::read_to_string(&back).unwrap() == lines, "the copied file is unchanged");
    assert_eq!(value(&direct, "select count(*) from t").await, "20000");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_listener_gets_notifications_of_other_sessions() {
    let (schema, _direct) = new_schema().await;
    let gateway = Gateway::start(&[]);
    let other = connect(&gateway.config()).await;
    let own = run(gateway.port(), &schema, &["listen bell", "notify bell, 'one'", "select 1"]);
    assert_eq!(own.matches("Asynchronous notification \"bell\" with payload \"one\"").count(), 1, "{own}");

    // While psql waits in its second command, the other session sends a notification, through the gateway too.
    let script = "select pg_advisory_lock(4711)";
    other.batch_execute("select pg_advisory_lock(4711)").await.unwrap();
    let port = gateway.port();
    let listening =
        tokio::task::spawn_blocking(move || run(port, &schema, &["listen bell", script, "select 1"]));
    let waiting = "select 1 from pg_locks where locktype = 'advisory' and objid = 4711 and not granted";
    hotrow_testkit::until("psql waits for the lock", async || {
        !hotrow_testkit::rows(&other, waiting).await.unwrap().is_empty()
    })
    .await;
    other.batch_execute("notify bell, 'two'").await.unwrap();
    other.batch_execute("select pg_advisory_unlock(4711)").await.unwrap();
    let output = listening.await.unwrap();
    assert!(output.contains("notification \"bell\" with payload \"two\""), "{output}");
}
