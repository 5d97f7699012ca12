//! Programs: the messages of several sessions, step by step, as plain data with a readable text form that can be parsed
//! again. Never sends anything.

use std::fmt;

/// A placeholder in names of tables, functions and roles for the number of the run, which keeps the objects of runs
/// apart.
pub const NUMBER: &str = "_N";

/// The messages of several sessions, one step after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub steps: Vec<Step>,
}

/// The messages that one session sends in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub session: char,
    /// Whether the next step begins only after this step's answer. If not, the answer belongs to the session's next
    /// step.
    pub waits: bool,
    pub frames: Vec<Frame>,
}

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A new connection with these startup parameters, in place of the session's old one.
    Connect(Vec<(String, String)>),
    /// Terminate, and the connection is closed.
    Leave,
    Query(String),
    Parse {
        name: String,
        text: String,
    },
    Bind {
        portal: String,
        statement: String,
        /// Whether binary results are requested.
        binary: bool,
        values: Vec<Option<String>>,
    },
    /// Of a statement (`S`) or portal (`P`).
    Describe(char, String),
    Close(char, String),
    Execute(String, u32),
    Sync,
    Flush,
    /// FunctionCall of a function in the notation of `regprocedure`, with text arguments.
    Call(String, Vec<Option<String>>),
    CopyData(String),
    CopyDone,
    CopyFail(String),
    /// A cancel request for the session's statement, which an earlier step has sent. It is sent when the statement waits.
    Cancel,
    /// The other frames of the step, with a cancel request after some microseconds. If the statement was cancelled, it is
    /// sent again, after a text that brings its transaction back.
    Race(u32, String),
    /// The same, and the gateway is paused until the statement is cancelled.
    Paused(String),
}

impl Program {
    /// The sessions in their order.
    pub fn sessions(&self) -> Vec<char> {
        let mut sessions: Vec<char> = self.steps.iter().map(|step| step.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Parses the output of [`fmt::Display`].
    pub fn read(text: &str) -> Result<Self, String> {
        let mut steps: Vec<Step> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |why: &str| format!("line {}: {why}: {line}", index + 1);
            let (prefix, rest) = line.split_once(' ').ok_or_else(|| invalid("no message"))?;
            let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let words = read_words(rest).ok_or_else(|| invalid("a word is neither quoted nor null"))?;
            let frame = Frame::from_words(kind, words).ok_or_else(|| invalid("no such message"))?;
            match prefix.strip_suffix('&').unwrap_or(prefix).chars().next() {
                Some('.') => steps.last_mut().ok_or_else(|| invalid("no step before"))?.frames.push(frame),
                Some(session) => {
                    steps.push(Step { session, waits: !prefix.ends_with('&'), frames: vec![frame] });
                }
                None => return Err(invalid("no session")),
            }
        }
        Ok(Self { steps })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "{step}"))
    }
}

impl Step {
    /// A step whose answer is waited for.
    pub fn new(session: char, frames: Vec<Frame>) -> Self {
        Self { session, waits: true, frames }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, frame) in self.frames.iter().enumerate() {
            match index {
                0 => write!(f, "{}{}", self.session, if self.waits { "" } else { "&" })?,
                _ => write!(f, ".")?,
            }
            let (kind, words) = frame.words();
            write!(f, " {kind}")?;
            for word in words {
                match word {
                    Some(word) => write!(f, " {word:?}")?,
                    None => write!(f, " null")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The arguments of a frame: texts or null.
type Words = Vec<Option<String>>;

impl Frame {
    fn words(&self) -> (&'static str, Words) {
        let all = |words: &[&str]| words.iter().map(|word| Some((*word).to_owned())).collect::<Words>();
        match self {
            Frame::Connect(parameters) => {
                ("Connect", parameters.iter().flat_map(|(name, value)| all(&[name, value])).collect())
            }
            Frame::Leave => ("Leave", all(&[])),
            Frame::Query(text) => ("Query", all(&[text])),
            Frame::Parse { name, text } => ("Parse", all(&[name, text])),
            Frame::Bind { portal, statement, binary, values } => {
                let format = if *binary { "binary" } else { "text" };
                ("Bind", [all(&[portal, statement, format]), values.clone()].concat())
            }
            Frame::Describe(kind, name) => ("Describe", all(&[&kind.to_string(), name])),
            Frame::Close(kind, name) => ("Close", all(&[&kind.to_string(), name])),
            Frame::Execute(portal, rows) => ("Execute", all(&[portal, &rows.to_string()])),
            Frame::Sync => ("Sync", all(&[])),
            Frame::Flush => ("Flush", all(&[])),
            Frame::Call(function, values) => ("Call", [all(&[function]), values.clone()].concat()),
            Frame::CopyData(data) => ("CopyData", all(&[data])),
            Frame::CopyDone => ("CopyDone", all(&[])),
            Frame::CopyFail(why) => ("CopyFail", all(&[why])),
            Frame::Cancel => ("Cancel", all(&[])),
            Frame::Race(after, undo) => ("Race", all(&[&after.to_string(), undo])),
            Frame::Paused(undo) => ("Paused", all(&[undo])),
        }
    }

    fn from_words(kind: &str, words: Words) -> Option<Self> {
        let mut words = words.into_iter();
        let mut text = || words.next().flatten();
        let frame = match kind {
            "Connect" => {
                let pairs = std::iter::from_fn(|| Some((text()?, text()?)));
                Frame::Connect(pairs.collect())
            }
            "Leave" => Frame::Leave,
            "Query" => Frame::Query(text()?),
            "Parse" => Frame::Parse { name: text()?, text: text()? },
            "Bind" => {
                let (portal, statement, format) = (text()?, text()?, text()?);
                Frame::Bind {
                    portal,
                    statement,
                    binary: format == "binary",
                    values: words.by_ref().collect(),
                }
            }
            "Describe" => Frame::Describe(text()?.chars().next()?, text()?),
            "Close" => Frame::Close(text()?.chars().next()?, text()?),
            "Execute" => Frame::Execute(text()?, text()?.parse().ok()?),
            "Sync" => Frame::Sync,
            "Flush" => Frame::Flush,
            "Call" => Frame::Call(text()?, words.by_ref().collect()),
            "CopyData" => Frame::CopyData(text()?),
            "CopyDone" => Frame::CopyDone,
            "CopyFail" => Frame::CopyFail(text()?),
            "Cancel" => Frame::Cancel,
            "Race" => Frame::Race(text()?.parse().ok()?, text()?),
            "Paused" => Frame::Paused(text()?),
            _ => return None,
        };
        words.next().is_none().then_some(frame)
    }

    /// The same frame with each `from` replaced.
    pub fn renamed(&self, from: &str, to: &str) -> Self {
        let (kind, words) = self.words();
        let words = words.into_iter().map(|word| word.map(|word| word.replace(from, to))).collect();
        Self::from_words(kind, words).expect("the words come from a frame")
    }
}

/// Words in double quotes, as Rust escapes them, or null.
fn read_words(mut rest: &str) -> Option<Words> {
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(words);
        }
        if let Some(after) = rest.strip_prefix("null") {
            words.push(None);
            rest = after;
            continue;
        }
        let mut word = String::new();
        let mut chars = rest.strip_prefix('"')?.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => word.push(escaped(&mut chars)?),
                other => word.push(other),
            }
        }
        words.push(Some(word));
        rest = chars.as_str();
    }
}

fn escaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'u' => {
            let (digits, after) = chars.as_str().strip_prefix('{')?.split_once('}')?;
            *chars = after.chars();
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
        }
        other => other,
    })
}

#[test]
fn a_printed_program_can_be_parsed() {
    for seed in 0..200 {
        for class in crate::generate::CLASSES {
            let program = crate::generate::program(class, seed);
            assert_eq!(Program::read(&program.to_string()).as_ref(), Ok(&program), "{program}");
        }
    }
    let odd = Frame::Query("select '\"\\\n\t\u{1}ü\u{200b}', E'\\''".to_owned());
    let program =
        Program { steps: vec![Step { session: 'a', waits: false, frames: vec![odd, Frame::Sync] }] };
    assert_eq!(Program::read(&program.to_string()), Ok(program));
}
