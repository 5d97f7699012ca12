//! Sends random messages to a simulated server, directly and through a session. The client gets the same
//! replies, its names have the same meaning, and no message waits forever.

use std::collections::{BTreeMap, VecDeque};

use super::*;

type Name = &'static str;
const NAMES: [Name; 3] = ["", "a", "b"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Returns this number. Its text may look like a COPY.
    Returns(u64, bool),
    FailsWhenRun,
    IsWrong,
    Empty,
    Deallocate(Name),
    DeallocateAll,
    /// COPY FROM STDIN, which can fail before it has read anything.
    Copy(bool),
}

#[derive(Clone, Debug)]
pub enum Asked {
    Parse(String, Text),
    Bind(String),
    Describe(String),
    Execute,
    Close(String),
    Sync,
    Flush,
    Query(Text),
    Call(bool),
    /// CopyData, valid or not.
    Data(bool),
    Done,
}

pub type Answer = (u8, String);

/// PostgreSQL's behaviour outside transaction blocks.
#[derive(Default)]
pub struct Server {
    statements: BTreeMap<String, Text>,
    portal: Option<Text>,
    /// The portal has run.
    is_done: bool,
    skips: bool,
    /// Whether the COPY under way was started by a Query.
    copy: Option<bool>,
    copies: usize,
    /// Written but not sent, until there is a reason to send.
    kept: Vec<Answer>,
    pub said: VecDeque<Answer>,
}

impl Server {
    fn say(&mut self, tag: u8, text: impl Into<String>) {
        self.kept.push((tag, text.into()));
        if b"EZG".contains(&tag) {
            self.said.extend(self.kept.drain(..));
        }
    }

    fn take(&mut self, asked: Asked) {
        if self.skips && !matches!(asked, Asked::Sync) {
            return;
        }
        if let Some(by_query) = self.copy {
            let outcome = match asked {
                Asked::Data(false) => Err("22P04".to_owned()),
                Asked::Done => Ok(()),
                Asked::Data(true) | Asked::Sync | Asked::Flush => return,
                other => panic!("{other:?} among COPY data"),
            };
            self.copy = None;
            if outcome.is_ok() {
                self.say(b'C', "COPY 0");
            }
            return self.end(outcome, !by_query);
        }
        let is_extended = !matches!(asked, Asked::Query(_) | Asked::Call(_));
        let outcome = self.run(asked);
        if self.copy.is_none() {
            self.end(outcome, is_extended);
        }
    }

    fn end(&mut self, outcome: Result<(), String>, is_extended: bool) {
        if let Err(code) = outcome {
            self.say(b'E', code);
            self.skips = is_extended;
        }
        if !is_extended {
            self.portal = None;
            self.say(b'Z', "");
        }
    }

    fn run(&mut self, asked: Asked) -> Result<(), String> {
        let missing = |name: &str| format!("26000 {name}");
        match asked {
            Asked::Parse(name, text) => {
                if name.is_empty() {
                    self.statements.remove("");
                }
                if text == Text::IsWrong {
                    return Err("42601".to_owned());
                }
                if self.statements.contains_key(&name) {
                    return Err(format!("42P05 {name}"));
                }
                self.statements.insert(name, text);
                self.say(b'1', "");
            }
            Asked::Bind(name) => {
                self.portal = Some(self.statements.get(&name).ok_or_else(|| missing(&name))?.clone());
                self.is_done = false;
                self.say(b'2', "");
            }
            Asked::Describe(name) => {
                let text = format!("{:?}", self.statements.get(&name).ok_or_else(|| missing(&name))?);
                self.say(b't', text);
                self.say(b'n', "");
            }
            Asked::Execute => {
                let text = self.portal.clone().ok_or("34000")?;
                if std::mem::replace(&mut self.is_done, true) {
                    return self.execute_again(&text);
                }
                return self.execute(text, false);
            }
            Asked::Close(name) => {
                self.statements.remove(&name);
                self.say(b'3', "");
            }
            Asked::Sync => {
                (self.skips, self.portal) = (false, None);
                self.say(b'Z', "");
            }
            Asked::Flush => self.said.extend(self.kept.drain(..)),
            Asked::Query(text) => {
                self.statements.remove("");
                return self.execute(text, true);
            }
            Asked::Call(true) => self.say(b'V', ""),
            Asked::Call(false) => return Err("22012".to_owned()),
            Asked::Data(_) | Asked::Done => {}
        }
        Ok(())
    }

    /// Only rows and nothing can be asked for again.
    fn execute_again(&mut self, text: &Text) -> Result<(), String> {
        match text {
            Text::Returns(..) => self.say(b'C', "SELECT 0"),
            Text::Empty => self.say(b'I', ""),
            _ => return Err("55000".to_owned()),
        }
        Ok(())
    }

    fn execute(&mut self, text: Text, by_query: bool) -> Result<(), String> {
        match text {
            Text::Returns(number, _) => {
                self.say(b'D', number.to_string());
                self.say(b'C', "SELECT 1");
            }
            Text::FailsWhenRun => return Err("22012".to_owned()),
            Text::IsWrong => return Err("42601".to_owned()),
            Text::Empty => self.say(b'I', ""),
            Text::Deallocate(name) => {
                self.statements.remove(name).ok_or(format!("26000 {name}"))?;
                self.say(b'C', "DEALLOCATE");
            }
            Text::DeallocateAll => {
                self.statements.retain(|name, _| name.is_empty());
                self.say(b'C', "DEALLOCATE ALL");
            }
            Text::Copy(fails) => {
                self.say(b'G', "");
                self.copies += 1;
                if fails {
                    return Err("P0001".to_owned());
                }
                self.copy = Some(by_query);
            }
        }
        Ok(())
    }
}

/// A session as the gateway has it: the messages that it sends for a message, and its interpretation of the
/// replies.
#[derive(Default)]
struct Session {
    expected: Expected<Text>,
    names: Names<Text>,
    prepared: PreparedStatements,
    texts: Vec<Text>,
    sent: VecDeque<Asked>,
    received: Vec<Answer>,
}

fn bytes(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

impl Session {
    fn number(&mut self, text: &Text) -> u64 {
        let there = self.texts.iter().position(|other| other == text);
        let index = there.unwrap_or_else(|| {
            self.texts.push(text.clone());
            self.texts.len() - 1
        });
        index as u64 + 1
    }

    fn put(&mut self, asked: Asked, message: Message<Text>) {
        self.sent.push_back(asked);
        self.expected.sent(message);
    }

    fn waits(&mut self, asked: &Asked) -> bool {
        if self.expected.skips() || self.expected.is_reading_copy() {
            return false;
        }
        let portal = match asked {
            Asked::Query(text) => Some(text.clone()),
            Asked::Execute => self.expected.portal(b"").ok().flatten().cloned(),
            _ => None,
        };
        let is_portal_in_doubt = matches!(asked, Asked::Execute) && self.expected.portal(b"").is_err();
        let name = match (asked, portal) {
            (_, Some(Text::Deallocate(name))) => Some(name.to_owned()),
            (Asked::Parse(name, _), _) if name.is_empty() => None,
            (Asked::Parse(name, _) | Asked::Bind(name) | Asked::Describe(name), _) => Some(name.clone()),
            _ => None,
        };
        let waits = self.expected.must_wait()
            || is_portal_in_doubt
            || name.is_some_and(|name| {
                !self.expected.owes_nothing() && self.expected.is_in_doubt(name.as_bytes())
            });
        if waits && self.expected.needs_flush() {
            self.sent.push_back(Asked::Flush);
        }
        waits
    }

    fn close_placeholders(&mut self) {
        for name in self.expected.take_placeholders() {
            let name = String::from_utf8(name.to_vec()).unwrap();
            self.put(Asked::Close(name), Message::OwnClose(None));
        }
        if self.expected.needs_flush() {
            self.sent.push_back(Asked::Flush);
        }
    }

    fn put_placeholder(&mut self, name: &str) {
        self.put(Asked::Close(name.to_owned()), Message::OwnClose(None));
        self.put(Asked::Parse(name.to_owned(), Text::Empty), Message::Placeholder(bytes(name)));
    }

    fn runs(&mut self, text: &Text) -> RunEffects {
        let mut runs = RunEffects {
            may_copy: matches!(text, Text::Copy(_) | Text::Returns(_, true)),
            ..RunEffects::default()
        };
        match text {
            Text::Deallocate(name) if self.expected.meaning(&self.names, name.as_bytes()).is_some() => {
                self.put_placeholder(name);
                runs.deallocates = Some(bytes(name));
            }
            Text::DeallocateAll => runs.deallocates_all = true,
            _ => {}
        }
        runs
    }

    /// The name under which a text is prepared.
    fn prepare(&mut self, name: &str, text: &Text) -> String {
        let number = self.number(text);
        let (own, preparation) = match name {
            "" => (String::new(), Preparation::unnamed(number, 1)),
            _ => (format!("hotrow_{number}"), Preparation::named(number, 1)),
        };
        if self.expected.preparation(&self.prepared, preparation.name) != Some(preparation) {
            if !name.is_empty() {
                self.put(Asked::Close(own.clone()), Message::OwnClose(Some(preparation.name)));
            }
            self.put(Asked::Parse(own.clone(), text.clone()), Message::OwnParse(Some(preparation)));
        }
        own
    }

    /// The meaning of a name on the connection.
    fn own_name(&mut self, name: &str) -> String {
        match self.expected.meaning(&self.names, name.as_bytes()).cloned() {
            Some(text) => self.prepare(name, &text),
            None => {
                if name.is_empty() {
                    self.put(Asked::Close(String::new()), Message::OwnClose(Some(StatementName::Unnamed)));
                }
                name.to_owned()
            }
        }
    }

    fn forward(&mut self, asked: Asked) {
        let is_sync = matches!(asked, Asked::Sync);
        if self.expected.skips() && !is_sync {
            return;
        }
        if !is_sync && !self.expected.is_reading_copy() {
            self.close_placeholders();
        }
        match asked.clone() {
            Asked::Parse(name, text) => {
                let number = self.number(&text);
                if name.is_empty() {
                    let preparation = Preparation::unnamed(number, 1);
                    self.put(asked, Message::Parse(Bytes::new(), Box::new(text), Some(preparation)));
                } else if self.expected.meaning(&self.names, name.as_bytes()).is_some() {
                    self.put_placeholder(&name);
                    self.put(asked, Message::Parse(bytes(&name), Box::new(text), None));
                } else {
                    let own = format!("hotrow_{number}");
                    self.put(
                        Asked::Close(own.clone()),
                        Message::OwnClose(Some(StatementName::Named(number))),
                    );
                    let preparation = Preparation::named(number, 1);
                    let message = Message::Parse(bytes(&name), Box::new(text.clone()), Some(preparation));
                    self.put(Asked::Parse(own, text), message);
                }
            }
            Asked::Bind(name) => {
                let record = self.expected.meaning(&self.names, name.as_bytes()).cloned();
                let changes =
                    (record.is_some() || self.expected.portals() > 0).then(|| (Bytes::new(), record));
                let own = self.own_name(&name);
                self.put(Asked::Bind(own), Message::Bind(bytes(&name), changes.map(Box::new)));
            }
            Asked::Describe(name) => {
                let own = self.own_name(&name);
                self.put(Asked::Describe(own), Message::Describe);
            }
            Asked::Execute => {
                let portal = self.expected.portal(b"").ok().flatten().cloned();
                let runs = portal.map(|text| self.runs(&text)).unwrap_or_default();
                self.put(asked, Message::Execute(runs));
            }
            Asked::Close(name) => self.put(asked, Message::Close(Some(bytes(&name)))),
            Asked::Sync => {
                self.put(asked, Message::Sync);
                if !self.expected.is_reading_copy() {
                    self.close_placeholders();
                }
            }
            Asked::Query(text) => {
                let runs = self.runs(&text);
                self.put(asked, Message::Query(runs));
            }
            Asked::Call(_) => self.put(asked, Message::FunctionCall),
            Asked::Flush => self.sent.push_back(asked),
            Asked::Data(_) | Asked::Done if !self.expected.is_reading_copy() => {}
            Asked::Data(_) => self.sent.push_back(asked),
            Asked::Done => {
                self.sent.push_back(asked);
                self.expected.sent_copy_end();
            }
        }
    }

    fn receive(&mut self, (tag, text): Answer) {
        let body = [text.as_bytes(), b"\0"].concat();
        match self.expected.received(&mut self.names, &mut self.prepared, tag, &body) {
            Reply::Forward => self.received.push((tag, text)),
            Reply::Swallow => {}
            Reply::ForwardAndAsk => {
                self.received.push((tag, text));
                let marker = [Asked::Sync, Asked::Close("hotrow_0".to_owned()), Asked::Flush];
                self.sent.extend(marker);
            }
            Reply::NotBegun | Reply::Unexpected => {
                panic!("{} was not expected after {:?}\n{:?}", char::from(tag), self.received, self.expected)
            }
        }
    }
}

fn text(random: &mut fastrand::Rng) -> Text {
    match random.u8(..12) {
        0..=4 => Text::Returns(random.u64(..3), random.u8(..4) == 0),
        5 => Text::FailsWhenRun,
        6 => Text::IsWrong,
        7 => Text::Empty,
        8 => Text::Deallocate(NAMES[random.usize(1..3)]),
        9 => Text::DeallocateAll,
        _ => Text::Copy(random.u8(..3) == 0),
    }
}

/// The next possible message. After a COPY has begun, the client sends all its data, because it may not know
/// that the COPY has ended.
fn message(random: &mut fastrand::Rng, in_copy: bool) -> Asked {
    if in_copy {
        return match random.u8(..8) {
            0..=2 => Asked::Data(true),
            3 => Asked::Data(false),
            4 => Asked::Flush,
            5 => Asked::Sync,
            _ => Asked::Done,
        };
    }
    let name = NAMES[random.usize(..3)].to_owned();
    match random.u8(..24) {
        0..=3 => Asked::Parse(name, text(random)),
        4..=7 => Asked::Bind(name),
        8 => Asked::Describe(name),
        9..=12 => Asked::Execute,
        13 => Asked::Close(name),
        14..=17 => Asked::Sync,
        18 => Asked::Flush,
        19..=20 => Asked::Query(text(random)),
        21 => Asked::Call(random.bool()),
        22 => Asked::Data(true),
        _ => Asked::Done,
    }
}

/// A client's messages, and the server that has answered them.
pub fn program(random: &mut fastrand::Rng) -> (VecDeque<Asked>, Server) {
    let mut direct = Server::default();
    let mut program = VecDeque::new();
    let mut in_copy = false;
    for left in (0..random.usize(4..40)).rev() {
        let asked = match left {
            0 => Asked::Sync,
            1..=2 if in_copy => Asked::Done,
            _ => message(random, in_copy),
        };
        if left < 3 && matches!(asked, Asked::Execute | Asked::Query(_)) {
            continue; // no COPY at the end
        }
        program.push_back(asked.clone());
        in_copy &= !matches!(asked, Asked::Done);
        let begun = direct.copies;
        direct.take(asked);
        in_copy |= direct.copies > begun;
    }
    (program, direct)
}

fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut program, direct) = program(&mut random);
    let shown = format!("seed {seed}: {program:?}");
    let (mut session, mut server) = (Session::default(), Server::default());
    loop {
        let can_receive = !server.said.is_empty();
        let can_run = !session.sent.is_empty();
        match random.u8(..3) {
            0 if can_receive => session.receive(server.said.pop_front().unwrap()),
            1 if can_run => server.take(session.sent.pop_front().unwrap()),
            2 => match program.pop_front() {
                Some(asked) if session.waits(&asked) => {
                    program.push_front(asked);
                    let is_stuck = !can_receive && session.sent.is_empty();
                    assert!(
                        !is_stuck,
                        "the client waits forever: {program:?}\n{shown}\n{session:?}",
                        session = session.expected
                    );
                }
                Some(asked) => session.forward(asked),
                None if !can_receive && !can_run => break,
                None => {}
            },
            _ => {}
        }
    }
    let directly: Vec<_> = direct.said.into_iter().collect();
    assert_eq!(session.received, directly, "{shown}");
    assert!(session.expected.is_settled(), "{shown}\n{:?}", session.expected);
    let names: BTreeMap<_, _> =
        direct.statements.iter().map(|(name, text)| (bytes(name), text.clone())).collect();
    assert_eq!(session.names, names, "{shown}");
}

#[test]
fn random_messages_have_the_same_effect_as_on_a_direct_connection_and_none_waits_forever() {
    (0..20_000).for_each(play);
}
