//! Sessions that leave state on their connections, and clients that wait for their replies: the channels and the settings
//! are handed over, and everything else keeps the connection. The clients' notifications are complete.

use std::collections::{BTreeMap, BTreeSet};

use bytes::BytesMut;
use hotrow_wire::backend::{Notification, tag};
use hotrow_wire::frontend;

use super::client::CLIENT_NAME;
use super::postgres::{Backend, Database};
use super::program::Writer;
use super::random::{Counts, frames, is_often, play_as, seeds};
use super::world::{OUTSIDER, World};

/// Commands that decide what constants mean. Behind other messages of its unit or its transaction, such a command may let the
/// server read earlier statements again.
const READING: [&str; 2] = ["set TimeZone = 'Etc/GMT+1'", "set TimeZone = 'UTC'"];

/// Other commands that change or show settings, or remove state.
const COMMANDS: [&str; 16] = [
    "set lc_time = 'C'",
    "set work_mem = '1MB'",
    "set work_mem = '2MB'",
    "set work_mem = '4MB'",
    "set local work_mem = '3MB'",
    "set application_name = 'x'",
    "reset work_mem",
    "reset all",
    "show work_mem",
    "show work_mem",
    "show TimeZone",
    "show app.x",
    "drop table x",
    "deallocate q",
    "deallocate all",
    "discard all",
];

/// Commands after which the session keeps its connection, or that a trigger follows.
const PINNING: [&str; 4] =
    ["set app.x = '1'", "create table x ()", "create temp table x ()", "prepare q as select 1"];

/// What the programs are mostly about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Everything,
    Channels,
    Settings,
    /// Transactions without commands that decide what constants mean. Some units are sent together.
    Transactions,
}

impl Writer<'_> {
    /// One client's messages: commands that change the session's state, among transactions and writes that are packed.
    pub(super) fn write_state(&mut self, units: usize, theme: Theme) {
        if theme == Theme::Channels {
            let first = self.one(&["prepare q as select 1", "set app.x = '1'", "set work_mem = '1MB'"]);
            self.boundary(first);
            let listen = format!("listen c{}", self.row);
            self.boundary(&listen);
        }
        for _ in 0..units {
            match (theme, self.random.u8(..12)) {
                (Theme::Everything | Theme::Settings, 0) => {
                    let text = self.one(&READING);
                    self.setting(text);
                }
                (Theme::Everything | Theme::Settings, 1 | 2) => self.constants(),
                (Theme::Transactions, ..4) | (_, 9..) => self.state_in_transaction(theme),
                // The unnamed statement of an earlier unit.
                (Theme::Transactions, 4) => {
                    self.bind("", "", 0);
                    self.execute_for("", 0);
                    self.out.extend_from_slice(frontend::SYNC);
                }
                (_, 3) => self.typical(),
                _ => self.state(theme),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    /// Statements whose meaning depends on a setting, under several values.
    pub(super) fn write_readings(&mut self, units: usize) {
        for _ in 0..units {
            match self.random.u8(..8) {
                0 => {
                    let text = self.one(&READING);
                    self.setting(text);
                }
                1 => frontend::put_query(&mut self.out, "show TimeZone"),
                2 => {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
                _ => self.constants(),
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }

    fn state(&mut self, theme: Theme) {
        const USUAL: [&str; 3] = ["set work_mem = '1MB'", "set work_mem = '2MB'", "show work_mem"];
        let (channels, usual, count) = match theme {
            Theme::Everything => (6, 6, 1),
            Theme::Channels => (16, 18, 1),
            Theme::Settings => (0, 14, 3),
            Theme::Transactions => (1, 14, 1),
        };
        let text = match self.random.u8(..20) {
            kind if kind < channels => self.channel_command(),
            kind if kind < usual => self.one(&USUAL[..count]).to_owned(),
            19 => self.one(&PINNING).to_owned(),
            _ if theme == Theme::Everything && self.random.u8(..4) == 0 => self.one(&PINNING).to_owned(),
            _ => self.one(&COMMANDS).to_owned(),
        };
        self.boundary(&text);
    }

    /// A command about one of the client's channels, or a notification to one of the first three clients.
    fn channel_command(&mut self) -> String {
        let name = self.one(&["c", "d"]);
        let row = self.row;
        // No other notification has this payload.
        let payload = 100_000 * (row + 1) + self.out.len() as u64;
        match self.random.u8(..8) {
            ..3 => format!("listen {name}{row}"),
            3 | 4 => format!("unlisten {name}{row}"),
            5 => self.one(&["unlisten *", "select pg_listening_channels()"]).to_owned(),
            6 => format!("notify {name}{}, '{payload}'", 10 * self.random.u64(..3)),
            _ => format!("notify {name}{row}, '{payload}'"),
        }
    }

    fn state_in_transaction(&mut self, theme: Theme) {
        self.boundary("begin");
        for _ in 0..self.random.usize(..5) {
            match self.random.u8(..8) {
                ..4 => self.state(theme),
                4 => self.typical(),
                5 => self.portals(),
                6 => {
                    let text = self.one(&["savepoint a", "rollback to a", "release a", "begin"]);
                    self.boundary(text);
                }
                _ => {
                    let text = self.literal();
                    frontend::put_query(&mut self.out, &text);
                }
            }
        }
        let end = self.one(&["commit", "commit", "rollback"]);
        self.boundary(end);
    }

    /// Portals that are read in parts, or again.
    fn portals(&mut self) {
        for _ in 0..self.random.usize(1..4) {
            let portal = self.one(&["", "p"]);
            if self.random.bool() {
                self.parse("", "select n from t where id = $1");
                self.bind(portal, "", 1);
            }
            let rows = self.random.u8(..2);
            self.execute_for(portal, rows);
            if self.random.bool() {
                self.out.extend_from_slice(frontend::SYNC);
            }
        }
        self.out.extend_from_slice(frontend::SYNC);
    }
}

/// The channels of a direct connection after each ReadyForQuery.
fn channels_by_unit(program: &[u8]) -> Vec<BTreeSet<String>> {
    let (mut backend, mut database) = (Backend::new(CLIENT_NAME, CLIENT_NAME), Database::default());
    backend.input.extend_from_slice(program);
    let mut channels = Vec::new();
    while backend.step(&mut database) {
        if frames(&backend.output.split()).iter().any(|frame| frame.tag == tag::READY) {
            channels.push(backend.listens.channels.clone());
        }
    }
    channels
}

/// A notification of another client that a waiting client has missed. A direct connection reports all notifications in the
/// order of their commits. Those whose sender has signalled it come before the answer to a message that arrives later.
pub fn missed(world: &World, client: usize, program: &[u8]) -> Option<String> {
    let sent = &world.database.notifications;
    let client = &world.clients[client];
    if !client.waits {
        return None;
    }
    let mut channels = channels_by_unit(program);
    channels.extend(channels.last().cloned()); // after the last unit
    let mut units =
        channels.into_iter().zip(client.marks.iter().copied().chain([Some((sent.len(), sent.len()))]));
    let (mut before, mut is_idle) = (BTreeSet::new(), true);
    let mut unit = units.next();
    let mut last = 0;
    // For each channel, the first notification that the client has to get.
    let mut from: BTreeMap<String, usize> = BTreeMap::new();
    let gap = |from: &BTreeMap<String, usize>, end: usize| {
        let mut all = from.iter().flat_map(|(channel, first)| (*first..end).map(move |at| (at, channel)));
        all.find(|(at, channel)| sent[*at].1 == **channel).map(|(at, _)| format!("{:?}", sent[at]))
    };
    for frame in frames(&client.received) {
        let Some((after, mark)) = &unit else { break };
        let from_here = |from: &mut BTreeMap<String, usize>| {
            from.retain(|channel, _| before.contains(channel));
            before.iter().for_each(|channel: &String| {
                if let Some((committed, _)) = mark {
                    from.entry(channel.clone()).or_insert(*committed);
                }
            });
        };
        from_here(&mut from);
        match frame.tag {
            tag::NOTIFICATION => {
                let got = Notification::read(frame.body()).expect("valid");
                let is_it = |(process_id, channel, payload): &(u32, String, String)| {
                    (*process_id == OUTSIDER) == (got.process_id == OUTSIDER)
                        && channel.as_bytes() == got.channel
                        && payload.as_bytes() == got.payload
                };
                let Some(place) = sent[last..].iter().position(is_it) else {
                    return Some("the order".to_owned());
                };
                let place = last + place;
                last = place + 1;
                let mut kept = from.clone();
                kept.retain(|channel, _| after.contains(channel));
                if let Some(missed) = gap(&kept, place) {
                    return Some(missed);
                }
                from.values_mut().for_each(|first| *first = (*first).max(place + 1));
            }
            tag::READY => {
                if let Some((_, signalled)) = mark.filter(|_| is_idle)
                    && let Some(missed) = gap(&from, signalled)
                {
                    return Some(format!("{missed}, which was signalled before"));
                }
                is_idle = frame.body() == b"I";
                before.clone_from(after);
                unit = units.next();
            }
            _ => {}
        }
    }
    from.retain(|channel, _| before.contains(channel));
    gap(&from, sent.len())
}

fn state(random: &mut fastrand::Rng, client: usize, theme: Theme) -> BytesMut {
    let units = random.usize(1..20);
    let mut writer = Writer { random, out: BytesMut::new(), row: 10 * client as u64, is_countable: false };
    writer.write_state(units, theme);
    writer.out
}

#[test]
fn the_state_that_sessions_leave_is_handed_over_without_a_difference() {
    let mut sum = Counts::default();
    for seed in seeds().step_by(4) {
        let theme = match seed / 4 % 4 {
            0 => Theme::Everything,
            1 => Theme::Channels,
            2 => Theme::Settings,
            _ => Theme::Transactions,
        };
        let change = |world: &mut World| {
            world.sends = 100;
            for client in &mut world.clients {
                (client.waits, client.sends_several) = (true, theme == Theme::Transactions);
            }
        };
        sum.add(&play_as(seed, change, |random, client| state(random, client, theme)));
    }
    let steps = ["shared", "held", "moved", "stays", "restored"];
    assert!(steps.iter().all(|step| is_often(sum.of(step), 20)), "{sum:?}");
}

#[test]
fn sessions_for_whose_settings_there_is_no_pool_keep_their_connections() {
    let mut sum = Counts::default();
    for seed in seeds().step_by(4) {
        let change = |world: &mut World| {
            world.has_room = false;
            world.clients.iter_mut().for_each(|client| client.waits = true);
        };
        sum.add(&play_as(seed, change, |random, client| {
            let units = random.usize(4..24);
            let row = 10 * client as u64;
            let mut writer = Writer { random, out: BytesMut::new(), row, is_countable: false };
            writer.write_readings(units);
            writer.out
        }));
    }
    let steps = ["stays", "certain", "restored"];
    assert!(steps.iter().all(|step| is_often(sum.of(step), 20)), "{sum:?}");
}

#[test]
fn a_session_ends_if_no_connection_takes_over_its_channels() {
    let (mut ended, mut held) = (0, 0);
    for seed in 0..50 {
        let mut program = BytesMut::new();
        for text in ["listen c0", "listen d0", "show work_mem"] {
            frontend::put_query(&mut program, text);
        }
        let mut world = World::new(fastrand::Rng::with_seed(seed), vec![program]);
        (world.loses_held, world.clients[0].waits) = (true, true);
        world.run();
        let asked = world.handed_over.contains_key("held");
        assert_eq!(world.clients[0].is_over, asked, "seed {seed}");
        (ended, held) = (ended + usize::from(asked), held + usize::from(!asked));
    }
    assert!(ended > 5 && held > 5, "{ended} sessions end, and {held} do not");
}
