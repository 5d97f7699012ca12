//! Random messages of all kinds: each client gets the replies of a direct connection, byte for byte, and the
//! rows have the same values. With cut connections, nothing that was acknowledged is lost and nothing runs
//! twice.

use bytes::BytesMut;
use hotrow_wire::backend::{Notification, Report, tag};
use hotrow_wire::{Frame, frontend, split};

use super::postgres::{Backend, Database};
use super::program::Writer;
use super::world::{CLIENT_NAME, OUTSIDER, World};

fn program(random: &mut fastrand::Rng, client: usize, is_countable: bool) -> BytesMut {
    let units = random.usize(1..12);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable };
    writer.write(units);
    writer.out
}

/// The replies on a direct connection.
fn direct(program: &[u8], database: &mut Database) -> BytesMut {
    let mut backend = Backend::new(CLIENT_NAME, CLIENT_NAME);
    backend.input.extend_from_slice(program);
    while backend.step(database) {}
    let output = backend.output.split();
    backend.die(database);
    output
}

fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some(frame) = split(bytes, |_| usize::MAX).expect("valid") {
        bytes = &bytes[frame.bytes.len()..];
        frames.push(frame);
    }
    frames
}

/// Messages in a readable form.
fn shown(bytes: &[u8]) -> String {
    let shown = frames(bytes).into_iter().map(|frame| {
        let body = String::from_utf8_lossy(frame.body()).replace('\0', " ");
        let body: String = body.chars().filter(|char| !char.is_control()).collect();
        format!("  {} {body}\n", char::from(frame.tag))
    });
    shown.collect()
}

/// The messages from the first difference on.
fn differing(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (shown(one), shown(other));
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let rest: Vec<&str> = one.lines().skip(same).collect();
    format!("  ({same} replies are the same)\n{}\n", rest.join("\n"))
}

fn play(seed: u64) -> (usize, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let clients = random.usize(1..4);
    let programs: Vec<_> = (0..clients).map(|client| program(&mut random, client, false)).collect();
    let mut expected = Database::default();
    let directly: Vec<_> = programs.iter().map(|program| direct(program, &mut expected)).collect();
    let mut world = World::new(random, programs.clone());
    world.sends = 30;
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
    for (client, directly) in directly.iter().enumerate() {
        let (received, from_others) = apart(&world.clients[client].received);
        check_order(seed, client, &programs[client], &from_others, &world.database);
        assert!(
            received == *directly,
            "HOTROW_SEED={seed}, client {client} sends\n{}through the gateway\n{}directly\n{}",
            shown(&programs[client]),
            differing(&received, directly),
            differing(directly, &received),
        );
    }
    for (row, value) in &expected.rows {
        let through = world.database.rows.get(row).copied().unwrap_or(0);
        assert_eq!(through, *value, "HOTROW_SEED={seed}: row {row}");
    }
    (world.shared.packed.get(), world.shared.passed.get())
}

/// What a client has received, without the notifications of the client outside, and these.
fn apart(received: &[u8]) -> (BytesMut, Vec<(String, usize)>) {
    let (mut rest, mut from_others) = (BytesMut::new(), Vec::new());
    for frame in frames(received) {
        match Notification::read(frame.body()) {
            Ok(Notification { process_id: OUTSIDER, channel, payload }) if frame.tag == tag::NOTIFICATION => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("valid");
                from_others.push((text(channel), text(payload).parse().expect("a number")));
            }
            _ => rest.extend_from_slice(frame.bytes),
        }
    }
    (rest, from_others)
}

/// The notifications of the client outside come once, in the order of their commits. None is missing between two others on
/// a channel that the client does not leave.
fn check_order(seed: u64, client: usize, program: &[u8], received: &[(String, usize)], database: &Database) {
    let context = || format!("HOTROW_SEED={seed}, client {client} gets {received:?}\n{}", shown(program));
    assert!(received.is_sorted_by(|(_, one), (_, other)| one < other), "{}", context());
    let text = String::from_utf8_lossy(program);
    for name in ["c", "d"] {
        let channel = format!("{name}{}", 10 * client);
        let leaves = [format!("unlisten {channel}"), "unlisten *".to_owned(), "discard all".to_owned()];
        if leaves.iter().any(|leaves| text.contains(leaves)) {
            continue;
        }
        let got: Vec<usize> =
            received.iter().filter(|(of, _)| *of == channel).map(|(_, sent)| *sent).collect();
        let (Some(first), Some(last)) = (got.first(), got.last()) else { continue };
        let sent = database.notifications[*first..=*last].iter().enumerate();
        let sent = sent.filter(|(_, (from, of, _))| *from == OUTSIDER && *of == channel);
        assert!(sent.map(|(place, _)| first + place).eq(got.iter().copied()), "{channel}: {}", context());
    }
}

/// The updates of a client that are acknowledged, and those in doubt. Each unit has one ReadyForQuery.
fn count(client: &BytesMut, received: &[u8], is_over: bool) -> (i64, i64) {
    let (mut acknowledged, mut doubtful, mut readies) = (0, 0, 0);
    for frame in frames(received) {
        match frame.tag {
            tag::COMMAND_COMPLETE if frame.body().starts_with(b"UPDATE") => acknowledged += 1,
            tag::ERROR => {
                let report = Report::read(frame.body()).expect("valid");
                doubtful += i64::from(report.code == b"08007");
            }
            tag::READY => readies += 1,
            _ => {}
        }
    }
    let sent = frames(client);
    let units = sent.iter().filter(|frame| [frontend::tag::QUERY, frontend::tag::SYNC].contains(&frame.tag));
    let units = units.count() as i64;
    // A connection that is lost under a passed-through unit ends the session.
    if is_over {
        doubtful += units - readies;
    } else {
        assert_eq!(readies, units, "each unit is answered once");
    }
    (acknowledged, doubtful)
}

fn play_with_cuts(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let programs: Vec<_> = (0..3).map(|client| program(&mut random, client, true)).collect();
    let mut world = World::new(random, programs.clone());
    world.cuts = 3;
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
    for (number, client) in world.clients.iter().enumerate() {
        let (acknowledged, doubtful) = count(&programs[number], &client.received, client.is_over);
        let first = 10 * number as u64;
        let rows = [first, first + 1].map(|row| world.database.rows.get(&row).copied().unwrap_or(0));
        let changed: i64 = rows.iter().sum();
        assert!(
            (acknowledged..=acknowledged + doubtful).contains(&changed),
            "HOTROW_SEED={seed}, client {number}: {changed} updates, {acknowledged} acknowledged, {doubtful} in doubt\n{}{}",
            shown(&programs[number]),
            shown(&client.received)
        );
    }
}

/// The seeds to play: all, or the one in the environment.
fn seeds() -> std::ops::Range<u64> {
    let one = std::env::var("HOTROW_SEED").ok().and_then(|seed| seed.parse().ok());
    one.map_or(0..2_000, |seed| seed..seed + 1)
}

#[test]
fn random_messages_have_the_replies_of_a_direct_connection() {
    let (mut packed, mut passed) = (0, 0);
    for seed in seeds() {
        let (one, other) = play(seed);
        (packed, passed) = (packed + one, passed + other);
    }
    let all = seeds().count() > 1;
    assert!(!all || packed > 1_000 && passed > 1_000, "{packed} packed, {passed} passed through");
}

#[test]
fn with_cut_connections_nothing_is_lost_and_nothing_runs_twice() {
    seeds().for_each(play_with_cuts);
}
