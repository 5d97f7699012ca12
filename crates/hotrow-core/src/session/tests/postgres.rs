//! A model of PostgreSQL: a backend reads a client's messages and answers them, with names, portals, transactions,
//! COPY, and errors that skip messages up to a Sync. Clients use separate rows, so no transaction waits for
//! another.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, BytesMut};
use hotrow_wire::backend::{self, Status};
use hotrow_wire::frontend::{self, Bind, Execute, ObjectName, Parse, tag};
use hotrow_wire::{put_frame, split};

use super::notify::{Listens, Sent};
use super::portals::Portal;
use super::statements::{GATEWAYS, TEMPORARY};
use super::transaction::Savepoint;
use crate::session::begun::FAILING;
use crate::session::put_ready;

/// The rows, and the committed transactions.
#[derive(Debug, Default)]
pub struct Database {
    pub rows: BTreeMap<u64, i64>,
    pub committed: BTreeSet<u64>,
    /// The committed changes of rows, in order, for standbys.
    pub log: Vec<(u64, i64)>,
    /// All notifications, in the order of their commits.
    pub notifications: Vec<Sent>,
    /// The number of those whose sender has signalled all listeners. It does so after its commit.
    pub signalled: usize,
    pub(super) last_xid: u64,
}

/// One backend and its connection.
#[derive(Debug)]
pub struct Backend {
    /// Bytes from the client.
    pub input: BytesMut,
    /// Bytes to the client.
    pub output: BytesMut,
    /// Replies that are sent with the next flush.
    pub(super) kept: BytesMut,
    pub statements: BTreeMap<String, String>,
    /// The parameter types that the last Parse of a name has declared, four bytes each.
    declared: BTreeMap<String, Vec<u8>>,
    pub(super) portals: BTreeMap<String, Portal>,
    pub status: Status,
    /// The rows that the transaction has changed, with their values before it.
    pub(super) undo: Vec<(u64, i64)>,
    pub(super) xid: Option<u64>,
    skips: bool,
    /// Set while a COPY reads data. It says whether an extended query began the COPY.
    pub(super) copy: Option<bool>,
    pub settings: BTreeMap<String, String>,
    pub(super) settings_before: Option<BTreeMap<String, String>>,
    /// The values that the transaction's local settings hide.
    pub(super) hidden: BTreeMap<String, Option<String>>,
    pub(super) savepoints: Vec<Savepoint>,
    pub(super) last_portal: usize,
    /// The last reported values of `REPORTED`.
    reported: [String; 2],
    /// The name of a client that sets none.
    default_name: String,
    pub is_dead: bool,
    pub process_id: u32,
    pub listens: Listens,
    /// Messages of an extended query have arrived without their Sync.
    pub(super) is_in_unit: bool,
    /// A cancel request has arrived while it works on the next message.
    pub(super) is_cancelled: bool,
    /// The portal of a Query that has failed was run again. A real server then reads memory that it has freed: it can crash.
    pub(super) has_run_freed: bool,
}

/// The settings whose values the server reports, in the order of their reports.
const REPORTED: [&str; 2] = ["application_name", "TimeZone"];

/// The time zone at login.
pub const UTC: &str = "UTC";

/// An error: its code and its message.
pub(super) type Failure = (&'static str, String);

pub(super) fn failure<T>(code: &'static str, message: impl Into<String>) -> Result<T, Failure> {
    Err((code, message.into()))
}

impl Backend {
    /// A connection of a client with this name.
    pub fn new(default_name: &str, name: &str) -> Self {
        let mut backend = Backend {
            input: BytesMut::new(),
            output: BytesMut::new(),
            kept: BytesMut::new(),
            statements: BTreeMap::new(),
            declared: BTreeMap::new(),
            portals: BTreeMap::new(),
            status: Status::Idle,
            undo: Vec::new(),
            xid: None,
            skips: false,
            copy: None,
            settings: BTreeMap::new(),
            settings_before: None,
            hidden: BTreeMap::new(),
            savepoints: Vec::new(),
            last_portal: 0,
            reported: Default::default(),
            default_name: default_name.to_owned(),
            is_dead: false,
            process_id: 1,
            listens: Listens::default(),
            is_in_unit: false,
            is_cancelled: false,
            has_run_freed: false,
        };
        backend.set_name(name);
        backend
    }

    /// Sets the client's name without a report to the client.
    pub fn set_name(&mut self, name: &str) {
        self.settings.remove("application_name");
        if name != self.default_name {
            self.settings.insert("application_name".to_owned(), name.to_owned());
        }
        self.reported = REPORTED.map(|name| self.setting(name).to_owned());
    }

    /// The value of a setting.
    pub(super) fn setting(&self, name: &str) -> &str {
        let at_start = match name {
            "application_name" => &self.default_name,
            "TimeZone" => UTC,
            "hotrow.reads" => "primary",
            "hotrow.pack" | "jit" => "on",
            "work_mem" => "4MB",
            _ => "",
        };
        self.settings.get(name).map_or(at_start, String::as_str)
    }

    /// The settings that differ from those at login, apart from the client's name.
    pub fn listed_settings(&self) -> BTreeMap<String, String> {
        let is_listed = |name: &str| name != "application_name" && !name.contains('.');
        let listed = self.settings.iter().filter(|(name, _)| is_listed(name));
        listed.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Replaces the settings, apart from the client's name.
    pub fn set_settings(&mut self, settings: &BTreeMap<String, String>) {
        self.settings.retain(|name, _| name == "application_name" || name == TEMPORARY);
        self.settings.extend(settings.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.reported = REPORTED.map(|name| self.setting(name).to_owned());
    }

    /// Whether a temporary table exists.
    pub fn has_temporary(&self) -> bool {
        self.settings.contains_key(TEMPORARY)
    }

    /// Whether there is a temporary table, or a setting that the server does not list.
    pub fn has_unlisted(&self) -> bool {
        self.settings.keys().any(|name| name.contains('.') && !name.starts_with(GATEWAYS))
    }

    /// The transaction under way, if it has written something.
    pub fn xid(&self) -> Option<u64> {
        self.xid
    }

    /// The connection is lost: the transaction is rolled back.
    pub fn die(&mut self, database: &mut Database) {
        self.roll_back(database);
        self.is_dead = true;
        self.input.clear();
    }

    /// A cancel request arrives. An idle backend ignores it.
    pub fn cancel(&mut self) {
        self.is_cancelled = !self.is_dead && matches!(split(&self.input, |_| usize::MAX), Ok(Some(_)));
    }

    /// Whether its transaction has changed this row.
    pub fn has_changed(&self, row: u64) -> bool {
        self.undo.iter().any(|(changed, _)| *changed == row)
    }

    /// Handles the next message. False if there is no complete message.
    pub fn step(&mut self, database: &mut Database) -> bool {
        if self.is_dead {
            return false;
        }
        let input = self.input.clone();
        let Some(frame) = split(&input, |_| usize::MAX).expect("clients send valid lengths") else {
            return false;
        };
        self.input.advance(frame.bytes.len());
        self.handle(frame.tag, frame.body(), database);
        self.is_cancelled = false;
        true
    }

    fn handle(&mut self, tag: u8, body: &[u8], database: &mut Database) {
        if tag == tag::TERMINATE {
            return self.die(database); // also after an error, and during a COPY
        }
        if let Some(extended) = self.copy {
            let result = match tag {
                tag::COPY_DONE => {
                    if !extended {
                        self.portals.remove("");
                    }
                    self.complete("COPY 0");
                    Ok(())
                }
                tag::COPY_FAIL => failure("57014", "COPY from stdin failed"),
                _ => return, // data, and Sync and Flush, which COPY ignores
            };
            self.copy = None;
            return self.end(result, extended, database);
        }
        if self.skips && tag != tag::SYNC {
            return;
        }
        let extended = !matches!(tag, tag::QUERY | tag::FUNCTION_CALL | tag::SYNC);
        let begins = matches!(tag, tag::PARSE | tag::BIND | tag::DESCRIBE | tag::EXECUTE);
        self.is_in_unit = extended && (begins || self.is_in_unit);
        let result = match tag {
            tag::QUERY => self.query(body, database),
            tag::FUNCTION_CALL => self.allowed("select").map(|()| {
                put_frame(&mut self.kept, backend::tag::FUNCTION_CALL, |out| {
                    out.extend_from_slice(&[0xff; 4]);
                });
            }),
            tag::PARSE => self.parse(&Parse::read(body).expect("valid")),
            tag::BIND => self.bind(&Bind::read(body).expect("valid")),
            tag::DESCRIBE => self.describe(&ObjectName::read(body).expect("valid")),
            tag::EXECUTE => self.execute_portal(&Execute::read(body).expect("valid"), database),
            tag::CLOSE => {
                let named = ObjectName::read(body).expect("valid");
                match named.statement {
                    true => drop(self.statements.remove(&text(named.name))),
                    false => drop(self.portals.remove(&text(named.name))),
                }
                self.kept.extend_from_slice(backend::CLOSE_COMPLETE);
                Ok(())
            }
            tag::FLUSH => {
                self.flush();
                Ok(())
            }
            tag::SYNC => {
                self.skips = false;
                Ok(())
            }
            _ => return, // COPY data outside a COPY
        };
        if self.copy.is_none() {
            self.end(result, extended, database);
        }
    }

    /// The end of a message.
    fn end(&mut self, result: Result<(), Failure>, extended: bool, database: &mut Database) {
        if let Err((code, message)) = result {
            self.error("ERROR", code, &message);
            self.skips = extended;
            self.abort(database);
        }
        if !extended {
            if self.status == Status::Idle {
                self.commit(database);
            }
            self.report_settings();
            self.report_notifications(database);
            put_ready(self.status, &mut self.kept);
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        self.output.extend_from_slice(&kept);
    }

    pub(super) fn error(&mut self, severity: &str, code: &str, message: &str) {
        let is_notice = severity == "WARNING";
        let tag = if is_notice { backend::tag::NOTICE } else { backend::tag::ERROR };
        put_frame(&mut self.kept, tag, |out| {
            for (field, value) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', message)] {
                out.extend_from_slice(&[field]);
                out.extend_from_slice(value.as_bytes());
                out.extend_from_slice(&[0]);
            }
            out.extend_from_slice(&[0]);
        });
        self.flush();
    }

    fn report_settings(&mut self) {
        for (index, name) in REPORTED.into_iter().enumerate() {
            let value = self.setting(name).to_owned();
            if self.reported[index] != value {
                backend::put_parameter_status(&mut self.kept, name, &value);
                self.reported[index] = value;
            }
        }
    }

    pub(super) fn complete(&mut self, command: &str) {
        backend::put_command_complete(&mut self.kept, command);
    }

    fn query(&mut self, body: &[u8], database: &mut Database) -> Result<(), Failure> {
        self.statements.remove("");
        let whole = text(frontend::query(body).expect("valid"));
        let statements: Vec<&str> = whole.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
        if statements.contains(&"selct") {
            return failure("42601", "syntax error at or near \"selct\"");
        }
        if statements.is_empty() {
            self.kept.extend_from_slice(backend::EMPTY_QUERY);
            return Ok(());
        }
        for statement in &statements {
            self.allowed(statement)?;
            // If the statement fails in a transaction, its portal stays.
            self.put_portal("", statement, Vec::new()).by_query = true;
            if self.shows_rows(statement) && !statement.starts_with("show hotrow.") {
                put_columns(&mut self.kept);
            }
            let read = self.read(statement);
            self.run(&read, &[], statements.len() > 1, database)?;
            match self.copy.is_some() {
                true => self.copy = Some(false),
                false => drop(self.portals.remove("")),
            }
        }
        Ok(())
    }

    /// Prepares a statement of the gateway. False if it is wrong.
    pub fn prepares(&mut self, name: &[u8], text: &[u8], types: &[u8]) -> bool {
        let kept = self.kept.len();
        self.statements.remove(str::from_utf8(name).expect("UTF-8"));
        let is_right = self.parse(&Parse { name, text, types }).is_ok();
        self.kept.truncate(kept);
        is_right
    }

    fn parse(&mut self, parse: &Parse<'_>) -> Result<(), Failure> {
        let (name, statement) = (text(parse.name), text(parse.text));
        if name.is_empty() {
            self.statements.remove("");
        }
        if statement == "selct" || statement.as_bytes() == FAILING {
            return failure("42601", "syntax error at or near \"selct\"");
        }
        if statement.contains(';') {
            return failure("42601", "cannot insert multiple commands into a prepared statement");
        }
        if !statement.is_empty() {
            self.allowed(&statement)?;
        }
        if self.statements.contains_key(&name) {
            return failure("42P05", format!("prepared statement \"{name}\" already exists"));
        }
        let read = self.read(&statement);
        self.declared.insert(name.clone(), parse.types.to_vec());
        self.statements.insert(name, read);
        self.kept.extend_from_slice(backend::PARSE_COMPLETE);
        Ok(())
    }

    /// The meaning of a text: a constant in quotes depends on the settings.
    fn read(&self, statement: &str) -> String {
        match statement.strip_suffix('\'') {
            Some(constant) if statement.starts_with("select ") => {
                format!("{constant}@{}'", self.setting("TimeZone"))
            }
            _ => statement.to_owned(),
        }
    }

    fn statement(&self, name: &str) -> Result<String, Failure> {
        match self.statements.get(name) {
            Some(statement) => Ok(statement.clone()),
            None if name.is_empty() => failure("26000", "unnamed prepared statement does not exist"),
            None => failure("26000", format!("prepared statement \"{name}\" does not exist")),
        }
    }

    fn bind(&mut self, bind: &Bind<'_>) -> Result<(), Failure> {
        let (portal, name) = (text(bind.portal), text(bind.statement));
        let statement = self.statement(&name)?;
        // PostgreSQL checks the count first. On a new connection the gateway prepares the statement again for
        // this Bind, and in a failed transaction the client gets the error of that Parse (docs/differences.md).
        self.allowed(&statement)?;
        let (given, wanted) = (bind.count(), parameters(&statement));
        if given != wanted {
            return failure(
                "08P01",
                format!(
                    "bind message supplies {given} parameters, but prepared statement \"{name}\" requires {wanted}"
                ),
            );
        }
        if !portal.is_empty() && self.portals.contains_key(&portal) {
            return failure("42P03", format!("cursor \"{portal}\" already exists"));
        }
        let values = (0..given)
            .filter_map(|index| bind.value(index))
            .map(|value| text(value.bytes.unwrap_or_default()))
            .collect();
        self.put_portal(&portal, &statement, values);
        self.kept.extend_from_slice(backend::BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, named: &ObjectName<'_>) -> Result<(), Failure> {
        let name = text(named.name);
        let statement = match named.statement {
            true => self.statement(&name)?,
            false => match self.portals.get(&name) {
                Some(portal) => portal.text.clone(),
                None => return failure("34000", format!("portal \"{name}\" does not exist")),
            },
        };
        // PostgreSQL describes statements without rows also in a failed transaction: the same difference.
        self.allowed(&statement)?;
        if named.statement {
            let declared = self.declared.get(&name).map_or(&[][..], Vec::as_slice);
            let types = parameter_types(parameters(&statement), declared);
            put_frame(&mut self.kept, backend::tag::PARAMETER_DESCRIPTION, |out| {
                out.extend_from_slice(&(parameters(&statement) as u16).to_be_bytes());
                out.extend_from_slice(&types);
            });
        }
        match self.shows_rows(&statement) {
            true => put_columns(&mut self.kept),
            false => self.kept.extend_from_slice(backend::NO_DATA),
        }
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        statement: &str,
        values: &[String],
        several: bool,
        database: &mut Database,
    ) -> Result<(), Failure> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words[0] {
            "update" | "select" => self.run_on_rows(&words, values, database),
            "--" => self.run_counted(statement, values, database),
            "begin" | "commit" | "rollback" | "savepoint" | "release" => {
                self.run_on_transaction(&words, database)
            }
            "deallocate" | "prepare" => self.run_on_names(&words),
            "set" | "show" | "reset" | "discard" => self.run_on_settings(&words, several),
            "create" | "drop" => self.run_on_tables(&words),
            "listen" | "unlisten" | "notify" => {
                self.run_on_channels(&words);
                Ok(())
            }
            "declare" | "fetch" | "close" => self.run_on_cursors(&words, database),
            "copy" if words.contains(&"to") => {
                self.copy_out();
                Ok(())
            }
            "copy" => {
                put_frame(&mut self.kept, backend::tag::COPY_IN, |out| out.extend_from_slice(&[0, 0, 0]));
                self.flush();
                self.copy = Some(true);
                Ok(())
            }
            _ => unknown(&words),
        }
    }

    /// Whether the server describes rows of a statement. It describes none for a cursor that does not exist.
    fn shows_rows(&self, statement: &str) -> bool {
        match statement.strip_prefix("fetch ") {
            Some(cursor) => self.portals.contains_key(cursor),
            None => returns_rows(statement),
        }
    }

    /// Keeps the settings for a rollback, unless the transaction has kept them already.
    pub(super) fn keep_settings(&mut self) {
        self.settings_before.get_or_insert_with(|| self.settings.clone());
    }
}

pub(super) fn unknown(words: &[&str]) -> Result<(), Failure> {
    panic!("the model has no such statement: {words:?}")
}

/// The types of this many parameters: those that a Parse has declared, and else an integer's.
pub(super) fn parameter_types(count: usize, declared: &[u8]) -> Vec<u8> {
    let mut declared = declared.chunks_exact(4);
    let mut types = Vec::new();
    for _ in 0..count {
        types.extend_from_slice(declared.next().unwrap_or(&23_u32.to_be_bytes()));
    }
    types
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("clients send UTF-8")
}

pub(super) fn number(word: &str, values: &[String]) -> u64 {
    match word.strip_prefix('$') {
        Some(index) => values[index.parse::<usize>().expect("a number") - 1].parse().expect("a number"),
        None => word.parse().expect("a number"),
    }
}

pub(super) fn parameters(statement: &str) -> usize {
    statement.matches('$').count()
}

pub(super) fn returns_rows(statement: &str) -> bool {
    statement.starts_with("select") || statement.starts_with("show") || statement.ends_with("returning n")
}

fn put_columns(out: &mut BytesMut) {
    put_frame(out, backend::tag::ROW_DESCRIPTION, |out| out.extend_from_slice(b"\0\x01n\0"));
}

pub(super) fn put_row(value: i64, out: &mut BytesMut) {
    put_text_row(&value.to_string(), out);
}

pub(super) fn put_text_row(value: &str, out: &mut BytesMut) {
    put_frame(out, backend::tag::DATA_ROW, |out| {
        out.extend_from_slice(&[0, 1, 0, 0, 0, value.len() as u8]);
        out.extend_from_slice(value.as_bytes());
    });
}
