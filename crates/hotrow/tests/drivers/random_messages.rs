//! Random valid messages in single writes, with few names, errors, transactions and COPY: the gateway replies as the
//! server does, byte for byte.

use std::time::{Duration, Instant};

use fastrand::Rng;
use hotrow_testkit::raw::{
    Message, Raw, bind, close, describe, execute, flush, frame, parse, query, sync, tags,
};
use hotrow_testkit::{server, value};

use crate::stage::{RESET, Stage};

/// How long the test generates programs.
const TIME: Duration = Duration::from_secs(8);

const NAMES: [&str; 3] = ["", "a", "b"];
const PORTALS: [&str; 3] = ["", "", "p"];
const TEXTS: [&str; 16] = [
    "select 1",
    "select 2 as two",
    "select 1 / 0",
    "wrong",
    "",
    "select n from t where id = 1",
    "update t set n = n + 1 where id = 2",
    "update t set n = n + 1 where id = 3 returning n",
    "update t set n = n / 0 where id = 1",
    "begin",
    "commit",
    "rollback",
    "deallocate a",
    "deallocate all",
    "select generate_series(1, 3)",
    "discard plans",
];
/// The name of COPY statements and their portals. No other message uses this name.
const COPYING: &str = "copying";
const COPIES: [&str; 2] = ["copy t (id, n) from stdin", "copy nowhere from stdin"];

fn text(random: &mut Rng) -> &'static str {
    TEXTS[random.usize(..TEXTS.len())]
}

/// A COPY with its data, from its first message to the end of the data.
fn copy(random: &mut Rng) -> Vec<Vec<u8>> {
    let text = COPIES[random.usize(..COPIES.len())];
    let mut messages = match random.bool() {
        true => vec![query(text)],
        false => {
            vec![close(b'S', COPYING), parse(COPYING, text), bind(COPYING, COPYING, &[]), execute(COPYING, 0)]
        }
    };
    for _ in 0..random.u8(..4) {
        messages.push(match random.u8(..6) {
            0 => sync(),
            1 => flush(),
            2 => frame(b'd', b"100\tx\n"),
            _ => frame(b'd', format!("{}\t1\n", random.u32(100..)).as_bytes()),
        });
    }
    messages.push(if random.u8(..4) == 0 { frame(b'f', b"no more\0") } else { frame(b'c', b"") });
    messages
}

fn messages(random: &mut Rng, call: &[u8]) -> Vec<Vec<u8>> {
    let (name, portal) = (NAMES[random.usize(..3)], PORTALS[random.usize(..3)]);
    let values: &[Option<&str>] = if random.u8(..12) == 0 { &[Some("1")] } else { &[] };
    let one = match random.u8(..30) {
        0..=5 => parse(name, text(random)),
        6..=10 => bind(portal, name, values),
        11 => describe(b'S', name),
        12 => describe(b'P', portal),
        13..=17 => execute(portal, random.u32(..3)),
        18 => close(b'S', name),
        19 => close(b'P', portal),
        20..=22 => sync(),
        23 => flush(),
        24..=25 => query(text(random)),
        26 => call.to_vec(),
        27 => frame([b'd', b'c', b'f'][random.usize(..3)], b"1\t1\n\0"),
        28 => {
            let text = text(random);
            return vec![parse("", text), bind("", "", &[]), describe(b'P', ""), execute("", 0), sync()];
        }
        _ => return copy(random),
    };
    vec![one]
}

/// A random program, in the pieces in which it is sent. Each piece ends with a Sync. `play` adds a Query that marks the
/// end.
fn program(random: &mut Rng, call: &[u8]) -> Vec<Vec<u8>> {
    let piece = |random: &mut Rng| {
        let parts: Vec<Vec<u8>> = (0..random.u8(1..12)).flat_map(|_| messages(random, call)).collect();
        [parts.concat(), sync()].concat()
    };
    (0..random.u8(1..5)).map(|_| piece(random)).collect()
}

/// Sends the pieces and returns the replies.
async fn play(raw: &mut Raw, pieces: &[Vec<u8>]) -> Vec<Message> {
    let mut replies = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        // This error differs from all others and marks the end of the piece, also in a failed transaction.
        let end = format!("the end of {place}");
        raw.send(&[&piece[..], &query(&end)].concat()).await;
        let is_end = |message: &Message| {
            message.tag == b'E'
                && message.field(b'M').is_some_and(|text| text.contains("syntax error at or near \"the\""))
        };
        while !replies.last().is_some_and(is_end) {
            replies
                .push(raw.message().await.unwrap_or_else(|| panic!("connection closed after {replies:?}")));
        }
        replies.push(raw.message().await.unwrap());
        assert_eq!(replies.last().unwrap().tag, b'Z');
    }
    replies
}

#[tokio::test]
async fn random_messages_get_the_replies_of_a_direct_connection() {
    let stage = Stage::new().await;
    let version = value(&stage.direct, "select 'version()'::regprocedure::oid").await.parse::<u32>().unwrap();
    let call = frame(b'F', &[&version.to_be_bytes()[..], &[0, 0, 0, 0, 0, 0]].concat());
    let mut seed = hotrow_testkit::seed();
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        let pieces = program(&mut Rng::with_seed(seed), &call);
        let mut replies = Vec::new();
        for port in [server().port(), stage.gateway.port()] {
            stage.direct.batch_execute(RESET).await.unwrap();
            let mut raw = stage.raw(port).await;
            let played = tokio::time::timeout(Duration::from_secs(20), play(&mut raw, &pieces)).await;
            let played = played
                .unwrap_or_else(|_| panic!("seed {seed}: no answer at port {port}: {}", shown(&pieces)));
            drop(raw);
            let state = "select string_agg(t::text, ' ' order by id) from t";
            replies.push((played, value(&stage.direct, state).await));
        }
        let (through, directly) = (replies.pop().unwrap(), replies.pop().unwrap());
        assert_eq!(tags(&through.0), tags(&directly.0), "seed {seed}: {}", shown(&pieces));
        let [through, directly] = [through, directly].map(|(played, state)| (without_places(played), state));
        assert_eq!(through, directly, "seed {seed}: {}", shown(&pieces));
        seed += 1;
    }
}

/// Without the places in the server's code of the errors of failed transactions. A statement that the client prepared before
/// the transaction fails at its Parse there, if the transaction's connection does not have it.
fn without_places(mut replies: Vec<Message>) -> Vec<Message> {
    for reply in replies.iter_mut().filter(|reply| reply.tag == b'E') {
        if reply.field(b'C').as_deref() == Some("25P02") {
            let fields = reply
                .body
                .split(|byte| *byte == 0)
                .filter(|field| !b"FLR".contains(field.first().unwrap_or(&b'F')));
            reply.body = fields.collect::<Vec<_>>().join(&0);
        }
    }
    replies
}

fn shown(pieces: &[Vec<u8>]) -> String {
    pieces.iter().map(|piece| format!("{}\n", piece.escape_ascii())).collect()
}
