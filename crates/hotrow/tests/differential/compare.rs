//! Compares the messages that two sessions received, byte by byte, except for natural differences and those that
//! docs/differences.md lists. Never connects to a server.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hotrow_testkit::raw::Message;

use crate::cancel::cancelled;
use crate::program::{Frame, Program, Step};
use crate::run::Received;

/// The first OID of an object that a user created.
const USERS_OIDS: u32 = 16_384;
/// An answer through the gateway may take `SLOWER` times as long as directly, plus `SLOWER_BY`.
const SLOWER: u32 = 10;
const SLOWER_BY: Duration = Duration::from_secs(2);

/// The first difference between two runs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The step's index. The final contents of the tables follow the last step.
    pub step: usize,
    /// The kind of difference. A smaller program has to show a difference of the same kind.
    pub kind: String,
    pub direct: String,
    pub through: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  directly: {}", self.direct)?;
        writeln!(f, "  through:  {}", self.through)
    }
}

/// The result of comparing one step.
pub enum Verdict {
    Same,
    /// A documented difference, or no answer directly: later steps cannot be compared.
    Incomparable,
    Differs(Difference),
}

/// Compares the runs of one program step by step.
#[derive(Default)]
pub struct Comparison {
    /// The OIDs that were seen, in the order in which each side has shown them.
    oids: [BTreeMap<u32, u32>; 2],
    notified: [BTreeMap<char, Vec<Message>>; 2],
}

impl Comparison {
    /// Judges a step or, after the last one, the messages that a session received at the end.
    pub fn step(
        &mut self,
        index: usize,
        program: &Program,
        direct: &Received,
        through: &Received,
    ) -> Verdict {
        let step = program.steps.get(index);
        let session = match step {
            Some(step) => step.session,
            None => program.sessions()[index - program.steps.len()],
        };
        let [left, right] =
            [(0, direct), (1, through)].map(|(side, received)| self.plain(side, session, received));
        let cancels = step.is_some_and(|step| step.frames.contains(&Frame::Cancel));
        let [left, right] = [left, right].map(|side| if cancels { of_cancelled(side) } else { side });
        let slow = through.took > direct.took * SLOWER + SLOWER_BY;
        let same = left == right && direct.closed == through.closed && !through.hangs && !slow;
        if same && !direct.hangs {
            return Verdict::Same;
        }
        // A statement that did not wait for anything directly can be cancelled or not.
        let is_race = cancels && cancelled(direct).is_none();
        if direct.hangs || is_race || step.is_some_and(|step| documented(program, step, &left, &right)) {
            return Verdict::Incomparable;
        }
        let kind = match (through.hangs, slow && left == right) {
            (true, _) => "no answer".to_owned(),
            (_, true) => "slow answer".to_owned(),
            _ => {
                let at = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
                let [left, right] = [&left, &right].map(|side| side.get(at).map_or("-".to_owned(), name));
                format!("{left} is {right}")
            }
        };
        let shown = |messages: &[Message], received: &Received| {
            let end = match (received.closed, received.hangs) {
                (true, _) => " and the connection is closed",
                (_, true) => " and nothing more",
                _ => "",
            };
            format!("{messages:?}{end}, {} ms", received.took.as_millis())
        };
        let (direct, through) = (shown(&left, direct), shown(&right, through));
        Verdict::Differs(Difference { step: index, kind, direct, through })
    }

    /// The received messages without natural differences. Notifications can arrive at any time and are put aside.
    fn plain(&mut self, side: usize, session: char, received: &Received) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let begins = received.messages.first().is_some_and(|message| message.tag == b'R');
        for message in &received.messages {
            let mut message = message.clone();
            match message.tag {
                b'K' => message.body.clear(),
                b'T' => self.columns(side, &mut message.body),
                b't' => self.types(side, &mut message.body),
                b'A' => {
                    message.body.drain(..4); // the process ID
                    self.notified[side].entry(session).or_default().push(message);
                    continue;
                }
                b'E' | b'N' => message.body = plain_report(&message.body),
                _ => {}
            }
            messages.push(message);
        }
        if begins {
            // The order of the parameters at the start has no meaning.
            messages
                .sort_by(|left, right| (left.tag == b'Z', &left.body).cmp(&(right.tag == b'Z', &right.body)));
        }
        messages
    }

    /// The notifications of all sessions, compared at the end.
    pub fn notifications(&self, index: usize) -> Verdict {
        let [direct, through] = &self.notified;
        if direct == through {
            return Verdict::Same;
        }
        Verdict::Differs(Difference {
            step: index,
            kind: "notifications".to_owned(),
            direct: format!("{direct:?}"),
            through: format!("{through:?}"),
        })
    }

    fn known(&mut self, side: usize, oid: u32) -> u32 {
        let seen = &mut self.oids[side];
        let next = USERS_OIDS + u32::try_from(seen.len()).expect("a program has few objects");
        if oid < USERS_OIDS { oid } else { *seen.entry(oid).or_insert(next) }
    }

    fn columns(&mut self, side: usize, body: &mut [u8]) {
        let mut at = 2;
        while at < body.len() {
            let Some(end) = body[at..].iter().position(|byte| *byte == 0) else { return };
            at += end + 1;
            self.replace(side, body, at); // the table's OID
            self.replace(side, body, at + 6); // the type's OID
            at += 18;
        }
    }

    fn types(&mut self, side: usize, body: &mut [u8]) {
        (2..body.len()).step_by(4).for_each(|at| self.replace(side, body, at));
    }

    fn replace(&mut self, side: usize, body: &mut [u8], at: usize) {
        if let Some(bytes) = body.get_mut(at..at + 4) {
            let oid = u32::from_be_bytes(bytes.try_into().expect("the slice has four bytes"));
            bytes.copy_from_slice(&self.known(side, oid).to_be_bytes());
        }
    }
}

/// An error or notice without what depends on the backend. In a failed transaction, the gateway may send a Parse before
/// a Bind, and the server reports the place of its code that refuses the Parse; or the gateway reports the error. Schemas are left out too. The `search_path` under which the backend first ran a
/// PL/pgSQL function decides whether the function is shown with its schema. The schema of temporary tables has the
/// backend's number. A row's place in its table shows how many attempts were rolled back before.
fn plain_report(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body).replace("PL/pgSQL function one.", "PL/pgSQL function ");
    let left_out: &[char] = match () {
        () if text.contains("\0C25P02\0") => &['F', 'L', 'R'],
        // The details name processes and transactions.
        () if text.contains("\0C40P01\0") => &['D'],
        () => &[],
    };
    let fields = text.split('\0').filter(|field| !field.starts_with(left_out)).map(without_place);
    let text = fields.collect::<Vec<_>>().join("\0");
    let mut parts = text.split("pg_temp_");
    let start = parts.next().unwrap_or_default().to_owned();
    let plain = parts.fold(start, |plain, part| {
        plain + "pg_temp_" + part.trim_start_matches(|digit: char| digit.is_ascii_digit())
    });
    plain.into_bytes()
}

/// A field of a report without the place in `while updating tuple (0,5) in relation "t"`.
fn without_place(field: &str) -> String {
    let place =
        field.split_once("tuple (").and_then(|(before, rest)| Some((before, rest.split_once(')')?.1)));
    match place {
        Some((before, after)) if field.starts_with('W') => format!("{before}tuple{after}"),
        _ => field.to_owned(),
    }
}

/// The answer to a cancelled statement. The gateway can refuse the statement before the server has seen it: then there are no
/// replies to its preparation and to the statements before it in the same text, and the error has no context.
fn of_cancelled(messages: Vec<Message>) -> Vec<Message> {
    if !messages.iter().any(|message| name(message) == "E57014") {
        return messages;
    }
    let kept = messages.into_iter().filter(|message| !b"123tTnDC".contains(&message.tag));
    let plain = kept.map(|message| match (message.tag, message.field(b'C'), message.field(b'M')) {
        (b'E', Some(code), Some(text)) => Message { body: format!("C{code}\0M{text}\0\0").into(), ..message },
        _ => message,
    });
    plain.collect()
}

fn name(message: &Message) -> String {
    let code = matches!(message.tag, b'E' | b'N').then(|| message.field(b'C')).flatten().unwrap_or_default();
    format!("{}{code}", char::from(message.tag))
}

/// Whether one of these messages is a notice that PostgreSQL raises when it computes a constant.
fn plans_notice(messages: &[Message]) -> bool {
    messages
        .iter()
        .any(|message| message.field(b'R').is_some_and(|routine| routine == "cleanup_tsquery_stopwords"))
}

/// Whether docs/differences.md lists this difference.
fn documented(program: &Program, step: &Step, direct: &[Message], through: &[Message]) -> bool {
    let error = |messages: &[Message], code: &str| {
        messages.iter().any(|message| message.tag == b'E' && message.field(b'C').is_some_and(|is| is == code))
    };
    let completes = |messages: &[Message], start: &str| {
        messages.iter().any(|message| message.tag == b'C' && message.body.starts_with(start.as_bytes()))
    };
    let refuses = |messages: &[Message], texts: &[&str]| {
        let is_one = |text: String| texts.iter().any(|end| text.ends_with(end));
        messages.iter().any(|message| message.tag == b'E' && message.field(b'M').is_some_and(is_one))
    };
    // A notice that the server raises during planning.
    let without_notices = |messages: &[Message]| -> Vec<Message> {
        messages.iter().filter(|message| name(message) != "N00000").cloned().collect()
    };
    if through.len() < direct.len()
        && without_notices(direct) == without_notices(through)
        && plans_notice(direct)
    {
        return true;
    }
    // A sequence that was advanced on a connection which the session no longer holds.
    const ELSEWHERE: [&str; 1] = ["are on another connection of the gateway"];
    const NO_VALUE: [&str; 1] = ["is not yet defined in this session"];
    if refuses(through, &ELSEWHERE) || refuses(through, &NO_VALUE) && !error(direct, "55000") {
        return true;
    }
    // A prepared statement whose result has changed by DDL.
    const CHANGED: [&str; 1] = ["cached plan must not change result type"];
    let prepared = step.frames.iter().any(|frame| matches!(frame, Frame::Bind { .. } | Frame::Parse { .. }));
    if prepared && (refuses(direct, &CHANGED) || refuses(through, &CHANGED)) {
        return true;
    }
    // Describe of a prepared statement that has become invalid.
    if let [types, rest @ ..] = direct
        && types.tag == b't'
        && rest.first().is_some_and(|message| message.tag == b'E')
        && rest == through
    {
        return true;
    }
    // EXECUTE of a statement that was prepared by the protocol.
    let executes = |frame: &Frame| match frame {
        Frame::Query(text) | Frame::Parse { text, .. } => text.trim_start().starts_with("execute"),
        _ => false,
    };
    let parsed_before = || program.steps.iter().flat_map(|step| &step.frames).any(executes);
    let runs = step
        .frames
        .iter()
        .any(|frame| executes(frame) || matches!(frame, Frame::Bind { .. }) && parsed_before());
    if runs && error(through, "26000") {
        return true;
    }
    // A connection that once had temporary tables, of this session or of another.
    let is_schema = |one: &[Message], other: &[Message]| error(one, "3F000") && error(other, "42P01");
    if is_schema(direct, through) || is_schema(through, direct) {
        return true;
    }
    if binds_earlier(step) && creates_function(program) {
        return true;
    }
    // A literal that is an error in itself, in an UPDATE or DELETE that matches no row.
    let fails = direct.iter().any(|message| name(message).starts_with("E22"));
    fails && (completes(through, "UPDATE 0") || completes(through, "DELETE 0"))
}

/// Whether a step uses a statement of an earlier step, which the gateway prepares again on another connection.
fn binds_earlier(step: &Step) -> bool {
    step.frames.iter().enumerate().any(|(index, frame)| match frame {
        Frame::Bind { statement, .. } => {
            let is_parse = |before: &Frame| matches!(before, Frame::Parse { name, .. } if name == statement);
            !step.frames[..index].iter().any(is_parse)
        }
        _ => false,
    })
}

/// Whether a function of a program can be one that fits the arguments of an earlier statement better.
fn creates_function(program: &Program) -> bool {
    let creates = |frame: &Frame| match frame {
        Frame::Query(text) | Frame::Parse { text, .. } => text.contains("create function"),
        _ => false,
    };
    program.steps.iter().flat_map(|step| &step.frames).any(creates)
}
