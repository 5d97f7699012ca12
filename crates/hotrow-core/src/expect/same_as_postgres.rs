//! The simulated server of `random` answers like a real one.

use bytes::BytesMut;
use hotrow_testkit::line::{Answer, Line};
use hotrow_testkit::seeds;
use hotrow_wire::frontend::{self, ObjectName, Parse, tag};
use hotrow_wire::put_frame;

use super::random::{Asked, Text, program};

fn sql(text: &Text) -> String {
    match text {
        Text::Returns(number, _) => format!("select {number}"),
        // The planner cannot compute it before the statement runs.
        Text::FailsWhenRun => "select 1 / (0 * random())::int".to_owned(),
        Text::IsWrong => "selct".to_owned(),
        Text::Empty => String::new(),
        Text::Deallocate(name) => format!("deallocate {name}"),
        Text::DeallocateAll => "deallocate all".to_owned(),
        Text::Copy(false) => "copy sink from stdin where false".to_owned(),
        Text::Copy(true) => "copy refusing from stdin".to_owned(),
    }
}

fn put(asked: &Asked, functions: [u32; 2], out: &mut BytesMut) {
    let mut named = |tag, name: &str| ObjectName { statement: true, name: name.as_bytes() }.put(tag, out);
    match asked {
        Asked::Parse(name, text) => {
            Parse { name: name.as_bytes(), text: sql(text).as_bytes(), types: &[] }.put(out);
        }
        Asked::Bind(name) => frontend::put_bind_text(out, name.as_bytes(), std::iter::empty()),
        Asked::Describe(name) => named(tag::DESCRIBE, name),
        Asked::Close(name) => named(tag::CLOSE, name),
        Asked::Execute => out.extend_from_slice(frontend::EXECUTE),
        Asked::Sync => out.extend_from_slice(frontend::SYNC),
        Asked::Flush => out.extend_from_slice(frontend::FLUSH),
        Asked::Query(text) => frontend::put_query(out, &sql(text)),
        Asked::Call(succeeds) => put_frame(out, tag::FUNCTION_CALL, |out| {
            out.extend_from_slice(&functions[usize::from(!succeeds)].to_be_bytes());
            out.extend_from_slice(&[0; 6]);
        }),
        Asked::Data(is_valid) => put_frame(out, tag::COPY_DATA, |out| {
            out.extend_from_slice(if *is_valid { b"1\n" } else { b"1\t2\n" });
        }),
        Asked::Done => put_frame(out, tag::COPY_DONE, |_| {}),
    }
}

/// Columns. The simulated server describes none.
const COLUMNS: [char; 2] = ['T', 'n'];

/// A message as far as the simulated server has its contents.
fn told(tag: char, answer: &Answer) -> String {
    match tag {
        'E' => format!("E {}", answer.error().expect("an error").code),
        'C' => format!("C {}", answer.command().expect("a command")),
        'D' => format!("D {}", answer.rows()[0][0].as_deref().expect("a value")),
        _ => tag.to_string(),
    }
}

/// The same for a message of the simulated server. Its errors also name statements.
fn simulated(tag: u8, text: &str) -> String {
    match tag {
        b'E' => format!("E {}", &text[..5]),
        b'C' | b'D' => format!("{} {text}", char::from(tag)),
        _ => char::from(tag).to_string(),
    }
}

fn compare(seed: u64, functions: [u32; 2]) {
    let (program, server) = program(&mut fastrand::Rng::with_seed(seed));
    let mut line = Line::to_shared_server(&[("user", "postgres"), ("database", "expected")]);
    program.iter().for_each(|asked| put(asked, functions, &mut line.out));
    line.out.extend_from_slice(frontend::TERMINATE);
    line.send().expect("the server reads");
    let mut by_server = Vec::new();
    while let Ok(bytes) = line.frame() {
        by_server.push((char::from(bytes[0]), Answer { bytes, whole: true }));
    }
    let has_contents = |tag: char| !COLUMNS.contains(&tag);
    let by_server = by_server.iter().filter(|(tag, _)| has_contents(*tag));
    let by_server: Vec<_> = by_server.map(|(tag, answer)| told(*tag, answer)).collect();
    let by_model = server.said.iter().filter(|(tag, _)| has_contents(char::from(*tag)));
    let by_model: Vec<_> = by_model.map(|(tag, text)| simulated(*tag, text)).collect();
    assert_eq!(by_model, by_server, "HOTROW_SEED={seed}: the model and the server after {program:#?}");
}

#[test]
fn the_simulated_server_answers_like_a_real_one() {
    let mut line = Line::to_shared_server(&[("user", "postgres"), ("database", "postgres")]);
    line.query("create database expected");
    let mut line = Line::to_shared_server(&[("user", "postgres"), ("database", "expected")]);
    let made = line.query(include_str!("same_as_postgres.sql"));
    assert!(made.error().is_none(), "{:?}", made.error());
    let functions = ["succeeds", "fails"].map(|name| {
        let rows = line.query(&format!("select '{name}'::regproc::oid")).rows();
        rows[0][0].as_deref().and_then(|oid| oid.parse().ok()).expect("the function exists")
    });
    seeds(100).for_each(|seed| compare(seed, functions));
}
