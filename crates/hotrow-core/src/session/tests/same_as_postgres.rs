//! The model of PostgreSQL gives clients' programs the answers of a real server. Its statements are symbolic: `MEANINGS` translates
//! them to SQL on the objects of `same_as_postgres.sql`.

use bytes::BytesMut;
use hotrow_testkit::line::Line;
use hotrow_testkit::seeds;
use hotrow_wire::backend::{Notification, Report, tag};
use hotrow_wire::frontend::{self, Parse};
use hotrow_wire::{Frame, put_frame};

use super::client::CLIENT_NAME;
use super::handover::Theme;
use super::postgres::{Backend, Database};
use super::program::Writer;
use super::random::{frames, shown};

/// The SQL of statements that mean something else to the model. Other statements are SQL.
const MEANINGS: [(&str, &str); 11] = [
    ("copy t from stdin", "copy sink from stdin where false"),
    ("copy t to stdout", "copy (select 1) to stdout"),
    ("prepare a as select 1", "prepare a as select n from t where id = 999"),
    ("prepare q as select 1", "prepare q as select n from t where id = 999"),
    ("create table x ()", "create table if not exists made ()"),
    ("create temp table x ()", "create temp table if not exists x ()"),
    ("create view x as select 1", "create or replace view forgets as select 1"),
    ("create view q as select 1", "create or replace view prepares as select 1"),
    ("select 'c'", "select reading('c', '2000-01-01')"),
    ("select 'd'", "select reading('d', '2000-01-01')"),
    (
        "select pg_listening_channels()",
        "select coalesce(string_agg(c, ' ' order by c collate \"C\"), '') from pg_listening_channels() c",
    ),
];

/// The client's startup settings. A new session of the model has the same values, also of settings that no server knows.
const OPTIONS: &str = "-c TimeZone=UTC -c jit=on -c work_mem=4MB -c app.x= -c hotrow.pack=on -c hotrow.reads=primary \
                       -c client_min_messages=warning -c synchronous_commit=off";

type Program = fn(&mut Writer<'_>, usize);

const PROGRAMS: [(&str, Program); 18] = [
    ("messages", |writer, units| writer.write(units)),
    ("messages whose effects can be counted", |writer, units| {
        writer.is_countable = true;
        writer.write(units);
    }),
    ("constants", |writer, units| writer.write_constants(units)),
    ("reads", |writer, units| writer.write_reads(units)),
    ("reads around preparing", |writer, _| writer.write_reads_around_preparing()),
    ("names in use", |writer, _| writer.write_names_in_use()),
    ("switches", |writer, units| writer.write_switches(units)),
    ("sets in transactions", |writer, _| writer.write_sets_in_transactions()),
    ("state", |writer, units| writer.write_state(units, Theme::Everything)),
    ("channels", |writer, units| writer.write_state(units, Theme::Channels)),
    ("settings", |writer, units| writer.write_state(units, Theme::Settings)),
    ("state in transactions", |writer, units| writer.write_state(units, Theme::Transactions)),
    ("readings", |writer, units| writer.write_readings(units)),
    ("sets that are kept", |writer, units| writer.write_kept(units)),
    ("moves", |writer, units| writer.write_moves(units, true)),
    ("portals of BEGIN", |writer, units| writer.write_portals_of_begin(units)),
    ("transactions that describe first", |writer, units| writer.write_describing_transactions(units)),
    ("names that triggers remove", |writer, units| writer.write_forgotten(units)),
];

/// A database of a real server with the objects of the model.
struct Stage {
    database: &'static str,
    line: Line,
    /// The function of each FunctionCall.
    nothing: u32,
}

impl Stage {
    fn new(database: &'static str) -> Self {
        login("postgres").query(&format!("create database {database}"));
        let mut line = login(database);
        let made = line.query(include_str!("same_as_postgres.sql"));
        assert!(made.error().is_none(), "{:?}", made.error());
        let rows = line.query("select 'nothing'::regproc::oid").rows();
        let nothing = rows[0][0].as_deref().and_then(|oid| oid.parse().ok()).expect("the function exists");
        Stage { database, line, nothing }
    }

    /// The answers to a program of a new client.
    fn play(&mut self, program: &[u8]) -> Vec<u8> {
        self.line
            .query("drop table if exists made; update t set n = case id when 999 then 1000000 else 0 end");
        let mut client = login(self.database);
        client.out.extend_from_slice(&self.translated(program));
        client.out.extend_from_slice(frontend::TERMINATE);
        client.send().expect("the server reads");
        client.until_end()
    }

    /// A program in SQL.
    fn translated(&self, program: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        for frame in frames(program) {
            match frame.tag {
                frontend::tag::QUERY => {
                    frontend::put_query(&mut out, &sql(frontend::query(frame.body()).expect("valid")));
                }
                frontend::tag::PARSE => {
                    let parse = Parse::read(frame.body()).expect("valid");
                    Parse { text: sql(parse.text).as_bytes(), ..parse }.put(&mut out);
                }
                frontend::tag::FUNCTION_CALL => put_frame(&mut out, frame.tag, |out| {
                    out.extend_from_slice(&self.nothing.to_be_bytes());
                    out.extend_from_slice(&frame.body()[4..]);
                }),
                _ => out.extend_from_slice(frame.bytes),
            }
        }
        out
    }

    /// The values of the rows that programs change.
    fn rows(&mut self) -> Vec<i64> {
        let rows = self.line.query("select n from t order by id").rows();
        rows.iter().map(|row| row[0].as_deref().expect("not null").parse().expect("a number")).collect()
    }
}

fn login(database: &str) -> Line {
    let parameters = [
        ("user", "postgres"),
        ("database", database),
        ("application_name", CLIENT_NAME),
        ("options", OPTIONS),
    ];
    Line::to_shared_server(&parameters)
}

fn sql(text: &[u8]) -> String {
    let meaning = |statement: &str| {
        // The model answers it like a DELETE, which finds nothing if only this client is there.
        let taken = statement.strip_prefix("update t set n = n - 1 where n > 0 and ");
        let known = MEANINGS.iter().find(|(symbol, _)| *symbol == statement.trim());
        match (taken, known) {
            (Some(condition), _) => format!("delete from t where n > 0 and {condition}"),
            (None, Some((_, sql))) => (*sql).to_owned(),
            (None, None) => statement.to_owned(),
        }
    };
    let statements = str::from_utf8(text).expect("UTF-8").split(';').map(meaning);
    statements.collect::<Vec<_>>().join(";")
}

/// A message as far as the model has its contents.
fn seen(frame: &Frame<'_>) -> String {
    let body = frame.body();
    let contents = match frame.tag {
        tag::ERROR | tag::NOTICE => {
            let report = Report::read(body).expect("valid");
            format!("{} {}", report.severity.escape_ascii(), report.code.escape_ascii())
        }
        // The model has no descriptions of columns.
        tag::ROW_DESCRIPTION => format!("{:?}", &body[..2]),
        tag::COPY_IN | b'H' => String::new(),
        tag::NOTIFICATION => {
            let sent = Notification::read(body).expect("valid");
            format!("{} {}", sent.channel.escape_ascii(), sent.payload.escape_ascii())
        }
        _ => body.escape_ascii().to_string(),
    };
    format!("{} {contents}", char::from(frame.tag))
}

/// In a failed transaction the model refuses each Bind and each Describe, as the gateway does (docs/differences.md). A
/// server checks the number of values first, and describes statements that return no rows.
fn is_documented(model: &str, real: &str) -> bool {
    model == "E ERROR 25P02" && (real == "E ERROR 08P01" || real.starts_with(['t', 'n']))
}

/// Returns the number of messages that are the same.
fn compare(stage: &mut Stage, seed: u64, kind: &str, write: Program) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let (units, client) = (random.usize(1..16), random.u64(..3));
    let mut writer =
        Writer { random: &mut random, out: BytesMut::new(), row: 10 * client, is_countable: false };
    write(&mut writer, units);
    let program = writer.out;
    let mut database = Database::default();
    let mut backend = Backend::new(CLIENT_NAME, CLIENT_NAME);
    backend.input.extend_from_slice(&program);
    while backend.step(&mut database) {}
    if backend.has_run_freed {
        return 0;
    }
    let model = backend.output.split();
    backend.die(&mut database);
    let real = stage.play(&program);
    let [model, real] =
        [&model[..], &real].map(|answers| frames(answers).iter().map(seen).collect::<Vec<_>>());
    let same = model.iter().zip(&real).take_while(|(model, real)| model == real).count();
    let next = [&model, &real].map(|answers| answers.get(same).map(String::as_str));
    if let [Some(model), Some(real)] = next
        && is_documented(model, real)
    {
        return same;
    }
    assert!(
        next == [None, None],
        "HOTROW_SEED={seed}, {kind}: a client sends\n{}after {same} answers that are the same\n{:#?}\nthe model answers\n{:#?}\nthe server answers\n{:#?}",
        shown(&program),
        &model[same.saturating_sub(8)..same],
        &model[same..model.len().min(same + 8)],
        &real[same..real.len().min(same + 8)],
    );
    let rows: Vec<i64> = (0..100).chain([999]).map(|row| database.value(row)).collect();
    assert_eq!(rows, stage.rows(), "HOTROW_SEED={seed}, {kind}: the rows after\n{}", shown(&program));
    same
}

fn compare_all(database: &'static str, count: u64) {
    let mut stage = Stage::new(database);
    let mut same = 0;
    for seed in seeds(count) {
        for (kind, write) in PROGRAMS {
            same += compare(&mut stage, seed, kind, write);
        }
    }
    assert!(same > 300 * seeds(count).count(), "only {same} messages were compared");
}

#[test]
fn the_model_of_postgres_answers_like_a_server() {
    compare_all("few_programs", 10);
}

#[test]
#[ignore = "long: make test-all"]
fn the_model_of_postgres_answers_many_programs_like_a_server() {
    compare_all("many_programs", 200);
}
