//! Random messages of all kinds: each client gets the replies of a direct connection, byte for byte, and the
//! rows have the same values. With cut connections and cancel requests, nothing that was acknowledged is lost, and
//! nothing runs twice.

use std::collections::BTreeMap;

use bytes::BytesMut;
use hotrow_testkit::programs;
use hotrow_wire::backend::{Notification, tag};
use hotrow_wire::{Frame, split};

use super::client::CLIENT_NAME;
use super::count::{check_rows, count};
use super::handover::missed;
use super::postgres::{Backend, Database};
use super::program::Writer;
use super::replicas::SHARED_FIRST;
use super::world::{OUTSIDER, World};
use crate::pack_mode::PackMode;
use crate::session::switches::{SwitchValues, Switches};

pub(super) fn program(random: &mut fastrand::Rng, client: usize, is_countable: bool) -> BytesMut {
    let units = random.usize(1..12);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable };
    writer.write(units);
    writer.out
}

/// The replies on a direct connection.
pub(super) fn direct(program: &[u8], database: &mut Database) -> BytesMut {
    let mut backend = Backend::new(CLIENT_NAME, CLIENT_NAME);
    backend.input.extend_from_slice(program);
    while backend.step(database) {}
    let output = backend.output.split();
    backend.die(database);
    output
}

pub(super) fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some(frame) = split(bytes, |_| usize::MAX).expect("valid") {
        bytes = &bytes[frame.bytes.len()..];
        frames.push(frame);
    }
    frames
}

/// Messages in a readable form.
pub(super) fn shown(bytes: &[u8]) -> String {
    let shown = frames(bytes).into_iter().map(|frame| {
        let body = String::from_utf8_lossy(frame.body()).replace('\0', " ");
        let body: String = body.chars().filter(|char| !char.is_control()).collect();
        format!("  {} {body}\n", char::from(frame.tag))
    });
    shown.collect()
}

/// The messages from the first difference on.
pub(super) fn differing(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (shown(one), shown(other));
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let rest: Vec<&str> = one.lines().skip(same).collect();
    format!("  ({same} replies are the same)\n{}\n", rest.join("\n"))
}

/// The messages of a client whose statements have constants.
fn constants(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let units = random.usize(1..20);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_constants(units);
    writer.out
}

/// The messages of a client that reads much.
fn reads(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let units = random.usize(1..20);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_reads(units);
    writer.out
}

pub(super) fn play(
    seed: u64,
    waits: bool,
    program: impl Fn(&mut fastrand::Rng, usize) -> BytesMut,
) -> Counts {
    play_as(seed, |world| world.clients.iter_mut().for_each(|client| client.waits = waits), program)
}

/// The same in a world that this changes.
pub(super) fn play_as(
    seed: u64,
    change: impl FnOnce(&mut World),
    program: impl Fn(&mut fastrand::Rng, usize) -> BytesMut,
) -> Counts {
    let mut random = fastrand::Rng::with_seed(seed);
    let clients = random.usize(1..4);
    let programs: Vec<_> = (0..clients).map(|client| program(&mut random, client)).collect();
    let mut expected = Database::default();
    let directly: Vec<_> = programs.iter().map(|program| direct(program, &mut expected)).collect();
    let mut world = World::new(random, programs.clone());
    (world.sends, world.restarts) = (30, 20);
    change(&mut world);
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
    for (client, directly) in directly.iter().enumerate() {
        let (received, from_others) = apart(&world.clients[client].received);
        let (received, values) = without_shared_values(&received);
        assert!(values.is_sorted(), "HOTROW_SEED={seed}, client {client} reads {values:?}");
        check_order(seed, client, &programs[client], &from_others, &world.database);
        if let Some(missed) = missed(&world, client, &programs[client]) {
            let (program, received) = (shown(&programs[client]), shown(&world.clients[client].received));
            panic!("HOTROW_SEED={seed}, client {client} misses {missed}\n{program}gets\n{received}");
        }
        assert!(
            received == *directly,
            "HOTROW_SEED={seed}, client {client} sends\n{}through the gateway\n{}directly\n{}",
            shown(&programs[client]),
            differing(&received, directly),
            differing(directly, &received),
        );
    }
    for (row, value) in &expected.rows {
        assert_eq!(world.database.value(*row), *value, "HOTROW_SEED={seed}: row {row}");
    }
    let replicas = world.shared.replicas.borrow();
    Counts {
        packed: world.shared.packed.get(),
        passed: world.shared.passed.get(),
        shadowed: world.shared.shadowed.get(),
        deferred: world.shared.deferred.get(),
        foretold_wrong: world.shared.foretold_wrong.get(),
        reads: replicas.reads,
        behind: replicas.behind,
        questions: replicas.questions,
        handed_over: world.handed_over.clone(),
    }
}

/// Units by where they ran, batches that a standby has refused because it was behind, and questions for the primary's position.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub packed: usize,
    passed: usize,
    shadowed: usize,
    pub deferred: usize,
    pub foretold_wrong: usize,
    reads: usize,
    behind: usize,
    questions: usize,
    pub handed_over: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// How often a step of a handover was taken.
    pub(super) fn of(&self, step: &str) -> usize {
        self.handed_over.get(step).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Counts) {
        self.packed += other.packed;
        self.passed += other.passed;
        self.shadowed += other.shadowed;
        self.deferred += other.deferred;
        self.foretold_wrong += other.foretold_wrong;
        self.reads += other.reads;
        self.behind += other.behind;
        self.questions += other.questions;
        for (step, count) in &other.handed_over {
            *self.handed_over.entry(step).or_default() += count;
        }
    }
}

/// The messages with the first value of the shared row in place of the values read from it, and these values in order.
fn without_shared_values(received: &[u8]) -> (BytesMut, Vec<i64>) {
    let (mut rest, mut values) = (BytesMut::new(), Vec::new());
    let first = SHARED_FIRST.to_string();
    for frame in frames(received) {
        let text = if frame.tag == tag::DATA_ROW { frame.body().get(6..) } else { None };
        let value = text.and_then(|text| str::from_utf8(text).ok()?.parse().ok());
        match value.filter(|value| *value >= SHARED_FIRST) {
            Some(value) => {
                values.push(value);
                rest.extend_from_slice(&frame.bytes[..frame.bytes.len() - first.len()]);
                rest.extend_from_slice(first.as_bytes());
            }
            None => rest.extend_from_slice(frame.bytes),
        }
    }
    (rest, values)
}

/// The messages as if no call had found something in the client's box, where others put something at any time.
fn without_takes(received: &[u8]) -> Vec<u8> {
    const TAKEN: &[u8] = b"CDELETE 1";
    let mut out = received.to_vec();
    for at in frames_at(received) {
        if out[at] == TAKEN[0] && out[at + 5..].starts_with(&TAKEN[1..]) {
            out[at + 4 + TAKEN.len() - 1] = b'0';
        }
    }
    out
}

/// Where the messages begin.
fn frames_at(bytes: &[u8]) -> Vec<usize> {
    let ends = frames(bytes).into_iter().scan(0, |end, frame| {
        let begin = *end;
        *end += frame.bytes.len();
        Some(begin)
    });
    ends.collect()
}

/// What a client has received, without the notifications of others, and those of the client outside.
fn apart(received: &[u8]) -> (BytesMut, Vec<(String, usize)>) {
    let (mut rest, mut from_others) = (BytesMut::new(), Vec::new());
    for frame in frames(received) {
        match Notification::read(frame.body()) {
            Ok(Notification { process_id: OUTSIDER, channel, payload }) if frame.tag == tag::NOTIFICATION => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("valid");
                from_others.push((text(channel), text(payload).parse().expect("a number")));
            }
            Ok(Notification { process_id: 2.., .. }) if frame.tag == tag::NOTIFICATION => {} // of other clients
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

/// Returns the number of errors of cancelled units.
pub(super) fn play_with_faults(mode: PackMode, seed: u64, cuts: usize, cancels: usize) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let programs: Vec<_> = (0..3).map(|client| program(&mut random, client, true)).collect();
    let mut world = World::new(random, programs.clone());
    (world.cuts, world.cancels, world.gifts, world.waits) = (cuts, cancels, 6, true);
    (world.sends, world.restarts) = (30, 10);
    world.shared.pack_mode.set(mode);
    world.clients.iter_mut().for_each(|client| client.waits = seed % 4 >= 2);
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    assert!(played.is_ok(), "HOTROW_SEED={seed}:\n{}", shown(&programs.concat()));
    let (mut cancelled, mut expected) = (0, Database::default());
    for (number, client) in world.clients.iter().enumerate() {
        let program = &programs[number];
        let end = world.before_faults.as_ref().map_or(client.received.len(), |ends| ends[number]);
        let (before, directly) = (&client.received[..end], direct(program, &mut expected));
        let (before, directly) = (without_takes(&without_shared_values(before).0), without_takes(&directly));
        assert!(
            directly.starts_with(&before),
            "HOTROW_SEED={seed}, client {number} sends\n{}before faults\n{}directly\n{}",
            shown(program),
            differing(&before, &directly),
            differing(&directly, &before),
        );
        let context = || {
            let (program, received) = (shown(program), shown(&client.received));
            format!("HOTROW_SEED={seed}, client {number}\n{program}\n{received}")
        };
        let (_, values) = without_shared_values(&client.received);
        assert!(values.is_sorted(), "it reads {values:?}\n{}", context());
        let effects = count(program, &client.received, client.is_over);
        if let Err(why) = check_rows(&world, number, &effects) {
            panic!("{why}\n{}", context());
        }
        match world.check_requests(number, program) {
            Ok(units) => cancelled += units,
            Err(why) => panic!("{why}\n{}", context()),
        }
    }
    cancelled
}

/// The seeds to play: those of 1,200 programs or of a part of them, or the one in the environment.
pub(super) fn seeds() -> std::ops::Range<u64> {
    let one = std::env::var("HOTROW_SEED").ok().and_then(|seed| seed.parse().ok());
    one.map_or_else(|| 0..programs(1_200), |seed| seed..seed + 1)
}

/// Whether this has happened more often than that in 2,000 programs, or its share in fewer. One program proves nothing of it.
pub(super) fn is_often(happened: usize, in_2000: usize) -> bool {
    let played = seeds().count();
    played == 1 || happened > in_2000 * played / 2_000
}

#[test]
fn random_messages_have_the_replies_of_a_direct_connection() {
    let mut sum = Counts::default();
    for seed in seeds() {
        sum.add(&play(seed, false, |random, client| program(random, client, false)));
    }
    assert!(is_often(sum.packed, 1_000) && is_often(sum.passed, 1_000), "{sum:?}");
}

/// In shadow mode no lane gets a unit, and the clients get the replies of a direct connection.
#[test]
fn in_shadow_mode_everything_is_passed_through_with_the_replies_of_a_direct_connection() {
    let mut sum = Counts::default();
    for seed in seeds() {
        let change = |world: &mut World| world.shared.pack_mode.set(PackMode::Shadow);
        sum.add(&play_as(seed, change, |random, client| program(random, client, false)));
    }
    assert_eq!(sum.packed, 0);
    assert!(is_often(sum.passed, 1_000) && is_often(sum.shadowed, 1_000), "{sum:?}");
}

#[test]
fn packing_is_switched_at_any_time() {
    let mut sum = Counts::default();
    for seed in seeds() {
        let change = |world: &mut World| world.changes_mode = true;
        sum.add(&play_as(seed, change, |random, client| program(random, client, false)));
    }
    assert!(is_often(sum.packed, 300) && is_often(sum.shadowed, 200), "{sum:?}");
}

/// A session that reads from standbys sees its own commits, and never an older state than before.
#[test]
fn reads_from_replicas_have_the_replies_of_a_direct_connection_and_never_go_back() {
    let mut sum = Counts::default();
    for seed in seeds() {
        sum.add(&play(seed, seed % 4 > 0, reads));
    }
    let are_often = is_often(sum.reads, 2_000) && is_often(sum.behind, 500) && is_often(sum.questions, 1_000);
    assert!(are_often, "{sum:?}");
}

#[test]
fn a_unit_that_only_prepares_does_not_make_the_next_read_ask_for_the_position() {
    let mut on_replica = 0;
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut writer = Writer { random: &mut random, out: BytesMut::new(), row: 0, is_countable: false };
        writer.write_reads_around_preparing();
        let mut world = World::new(fastrand::Rng::with_seed(seed), vec![writer.out]);
        world.clients[0].waits = true;
        world.run();
        let replicas = world.shared.replicas.borrow();
        // The connection of the first read is newer than that read, so the second one runs on the primary.
        if (replicas.reads, replicas.behind) == (3, 1) {
            on_replica += 1;
            assert_eq!(replicas.questions, 2, "seed {seed}");
        }
    }
    assert!(on_replica > 10, "{on_replica} sessions");
}

/// Prepares a statement under a name in use, in a transaction that the server has not begun yet.
fn names_in_use(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_names_in_use();
    writer.out
}

#[test]
fn a_name_in_use_fails_a_transaction_that_the_server_has_not_begun() {
    for seed in seeds().step_by(4) {
        play(seed, true, names_in_use);
        play(seed, false, names_in_use);
    }
}

#[test]
fn constants_keep_the_meaning_that_they_had_when_their_statement_was_prepared() {
    seeds().step_by(4).for_each(|seed| {
        play(seed, true, constants);
    });
}

/// The messages of a client that changes the gateway's settings.
fn switches(random: &mut fastrand::Rng, client: usize) -> BytesMut {
    let units = random.usize(1..8);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_switches(units);
    writer.out
}

#[test]
fn the_settings_of_the_gateway_follow_transactions_like_those_of_the_server() {
    for seed in seeds().step_by(4) {
        let change = |world: &mut World| {
            for client in &mut world.clients {
                client.waits = seed % 8 > 0;
                client.session.switches = Switches::new(SwitchValues::default());
            }
        };
        play_as(seed, change, switches);
    }
}

#[test]
fn with_cut_connections_nothing_is_lost_and_nothing_runs_twice() {
    seeds().for_each(|seed| assert_eq!(play_with_faults(PackMode::On, seed, 3, 0), 0));
}

/// Each unit that would be packed ends, also if it is refused, cancelled or cut off.
#[test]
fn in_shadow_mode_nothing_is_lost_and_nothing_runs_twice() {
    let play = |seed| play_with_faults(PackMode::Shadow, seed, 3 * (seed as usize % 2), 6);
    let cancelled: usize = seeds().map(play).sum();
    assert!(is_often(cancelled, 500), "{cancelled} errors of cancelled units");
}

#[test]
fn a_cancelled_unit_changes_nothing_and_the_others_are_exact() {
    let cancelled: usize =
        seeds().map(|seed| play_with_faults(PackMode::On, seed, 3 * (seed as usize % 2), 6)).sum();
    assert!(is_often(cancelled, 500), "{cancelled} errors of cancelled units");
}

/// The number of statements that a transaction refuses because it has failed. It runs none of them.
pub(super) fn refused_after_failure(seed: u64, received: &[u8]) -> usize {
    let (mut has_failed, mut refused) = (false, 0);
    for frame in frames(received) {
        match frame.tag {
            tag::READY => has_failed = frame.body() == b"E",
            tag::COMMAND_COMPLETE if has_failed => {
                assert_eq!(frame.body(), b"ROLLBACK\0", "HOTROW_SEED={seed}:\n{}", shown(received));
            }
            tag::ERROR if has_failed => refused += 1,
            _ => {}
        }
    }
    refused
}

#[test]
fn a_transaction_that_has_failed_without_a_connection_runs_no_set() {
    let mut refused = 0;
    for seed in seeds().step_by(4) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut writer = Writer { random: &mut random, out: BytesMut::new(), row: 0, is_countable: false };
        writer.write_sets_in_transactions();
        let program = writer.out;
        let mut world = World::new(random, vec![program]);
        (world.waits, world.cancels) = (true, 12);
        world.clients[0].waits = true;
        world.run();
        refused += refused_after_failure(seed, &world.clients[0].received);
    }
    assert!(is_often(refused, 100), "{refused} statements");
}
