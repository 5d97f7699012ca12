//! The admin console: a client that connects to the database `hotrow` reaches the gateway itself, by the simple or the
//! extended protocol. The commands are in `crate::console`. Each table has a file here.

mod answer;
mod clients;
mod config;
mod databases;
mod help;
mod keys;
mod lanes;
mod lists;
mod perform;
mod pool_settings;
mod pools;
mod replicas;
mod servers;
mod shadow;
mod statements;
mod stats;
mod units;
mod version;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::console::{self, Access, Command, DATABASE, IgnoredCommand};
use bytes::{Bytes, BytesMut};
use hotrow_connect::net::{ReadHalf, WriteHalf};
use hotrow_core::limits;
use hotrow_core::session::cancelled;
use hotrow_wire::backend::{self, Problem, Status, tag};
use hotrow_wire::frontend::{self, Bind, Execute, ObjectName, Parse};
use hotrow_wire::{Frame, SqlState, put_frame, split};

use crate::operator::view::Values;
use crate::shared::Shared;
use answer::Answer;

/// Parameters of a server that every driver accepts.
const PARAMETERS: [(&str, &str); 7] = [
    ("server_version", concat!("14.0 (hotrow ", env!("CARGO_PKG_VERSION"), ")")),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// A user of the console. The user's rights are looked up for each command, so a reload takes effect at once.
#[derive(Debug)]
pub struct Operator {
    /// The user's name.
    pub user: String,
    /// Whether the user connects from this machine.
    pub is_local: bool,
}

impl Operator {
    fn access(&self, shared: &Shared) -> Option<Access> {
        shared.config().console_access(&self.user, self.is_local)
    }

    /// Values of the clients' statements belong to the clients. Administrators see them: by default, only the user that
    /// the gateway itself logs in as is one.
    fn values(&self, shared: &Shared) -> Values {
        if self.access(shared) == Some(Access::Admin) { Values::Shown } else { Values::Hidden }
    }

    /// Why this user cannot use the console, if so.
    pub fn refusal(&self, shared: &Shared) -> Option<Problem> {
        if self.access(shared).is_some() {
            return None;
        }
        let user = &self.user;
        let message = format!(
            "user \"{user}\" may not use the gateway's console, which is the database \"{DATABASE}\""
        );
        let hint = "Add the user to console_readers or console_admins and reload the settings, or name a database of the server.";
        Some(Problem::fatal(SqlState::InsufficientPrivilege, message, hint))
    }

    /// Why this user cannot run a command, if so.
    fn refusal_of(&self, command: &Command, shared: &Shared) -> Option<Problem> {
        let word = command.admin_keyword()?;
        if self.access(shared) == Some(Access::Admin) {
            return None;
        }
        let message = format!("user \"{}\" may not {word}: only users in console_admins may", self.user);
        let hint = "Connect as one of them, or add the user to console_admins and reload the settings.";
        Some(Problem::error(SqlState::InsufficientPrivilege, message, hint))
    }
}

/// An operator's session.
pub struct Console {
    shared: Arc<Shared>,
    operator: Operator,
    read: ReadHalf,
    write: WriteHalf,
    input: BytesMut,
    out: BytesMut,
    statements: HashMap<Bytes, Command>,
    portals: HashMap<Bytes, Portal>,
    in_transaction: bool,
    /// After an error in an extended query, messages up to the next Sync are ignored.
    skipping: bool,
    /// For cancel requests.
    cancel_handle: Arc<crate::session::control::ConsoleCancelHandle>,
}

/// A command and the state of its execution.
struct Portal {
    command: Command,
    binary: bool,
    /// The rest of the answer, after the command has run.
    answer: Option<Answer>,
}

/// Serves an operator who has logged in, from the greeting to the end.
pub async fn serve(
    shared: Arc<Shared>,
    operator: Operator,
    (read, write, input): (ReadHalf, WriteHalf, BytesMut),
    mut out: BytesMut,
) {
    let mut secret = [0; 4];
    if let Err(error) = getrandom::fill(&mut secret) {
        tracing::error!(%error, "the system gives no random numbers");
        return;
    }
    let cancel_handle = shared.controls.register_console(secret);
    out.extend_from_slice(backend::AUTHENTICATION_OK);
    for (name, value) in PARAMETERS {
        backend::put_parameter_status(&mut out, name, value);
    }
    backend::put_backend_key_data(&mut out, cancel_handle.process_id, &secret);
    out.extend_from_slice(backend::READY_IDLE);
    let mut console = Console {
        shared,
        operator,
        read,
        write,
        input,
        out,
        statements: HashMap::new(),
        portals: HashMap::new(),
        in_transaction: false,
        skipping: false,
        cancel_handle,
    };
    let end = console.run().await;
    if let Err(ConsoleEnd::Problem(problem)) = end {
        problem.put(&mut console.out);
        let _ = console.write.drain(&mut console.out).await; // the client may be gone
    }
    console.shared.controls.remove_console(console.cancel_handle.process_id);
}

/// Why the console's session ends.
enum ConsoleEnd {
    Left,
    Problem(Problem),
}

impl From<io::Error> for ConsoleEnd {
    fn from(_: io::Error) -> Self {
        ConsoleEnd::Left
    }
}

impl From<hotrow_wire::Error> for ConsoleEnd {
    fn from(error: hotrow_wire::Error) -> Self {
        ConsoleEnd::Problem(Problem::fatal(
            SqlState::ProtocolViolation,
            error.to_string(),
            "Use a client for PostgreSQL's protocol, version 3.",
        ))
    }
}

impl Console {
    async fn run(&mut self) -> Result<(), ConsoleEnd> {
        loop {
            self.take_frames().await?;
            self.write.drain(&mut self.out).await?;
            let leaving = self.shared.leaving();
            tokio::select! {
                count = self.read.fill(&mut self.input) => {
                    if count? == 0 {
                        return Err(ConsoleEnd::Left);
                    }
                }
                () = leaving => return Err(ConsoleEnd::Problem(crate::session::problems::stopping())),
            }
        }
    }

    async fn take_frames(&mut self) -> Result<(), ConsoleEnd> {
        let mut input = std::mem::take(&mut self.input);
        loop {
            if let Some(tag) = input.first() {
                frontend::check_tag(*tag)?;
            }
            let Some(frame) = split(&input, |_| limits::SMALL_MESSAGE_BYTES_MAX)? else { break };
            let length = frame.bytes.len();
            let bytes = input.split_to(length).freeze();
            // Input is read while the command runs, so a client that disconnects is noticed.
            self.input.unsplit(std::mem::take(&mut input));
            let frame = split(&bytes, |_| usize::MAX)?.ok_or(ConsoleEnd::Left)?;
            self.take(frame).await?;
            input = std::mem::take(&mut self.input);
        }
        self.input = input;
        Ok(())
    }

    async fn take(&mut self, frame: Frame<'_>) -> Result<(), ConsoleEnd> {
        let body = frame.body();
        match frame.tag {
            frontend::tag::TERMINATE => return Err(ConsoleEnd::Left),
            frontend::tag::SYNC => {
                self.skipping = false;
                self.portals.retain(|_, _| self.in_transaction);
                self.put_ready();
            }
            _ if self.skipping => {}
            frontend::tag::QUERY => self.query(frontend::query(body)?).await?,
            frontend::tag::PARSE => self.parse(&Parse::read(body)?),
            frontend::tag::BIND => self.bind(&Bind::read(body)?),
            frontend::tag::DESCRIBE => self.describe(&ObjectName::read(body)?),
            frontend::tag::EXECUTE => self.execute(body).await?,
            frontend::tag::CLOSE => {
                let close = ObjectName::read(body)?;
                if close.statement {
                    self.statements.remove(close.name);
                } else {
                    self.portals.remove(close.name);
                }
                self.out.extend_from_slice(backend::CLOSE_COMPLETE);
            }
            frontend::tag::FLUSH => {}
            // Unlike messages of an extended query, a FunctionCall is not followed by a Sync.
            frontend::tag::FUNCTION_CALL => {
                unsupported().put(&mut self.out);
                self.put_ready();
            }
            _ => self.refuse(&unsupported()),
        }
        Ok(())
    }

    async fn query(&mut self, text: &[u8]) -> Result<(), ConsoleEnd> {
        let text = String::from_utf8_lossy(text).into_owned();
        let commands = console::split(&text);
        if commands.is_empty() {
            self.out.extend_from_slice(backend::EMPTY_QUERY);
        }
        for text in commands {
            let answered = match console::parse(text) {
                Ok(command) => self.perform(&command).await?,
                Err(unknown) => Err(problem(&unknown)),
            };
            match answered {
                Ok(mut answer) => {
                    answer.put_description(false, &mut self.out);
                    answer.put_rows(usize::MAX, false, &mut self.out);
                }
                Err(problem) => {
                    problem.put(&mut self.out);
                    break;
                }
            }
        }
        self.put_ready();
        Ok(())
    }

    fn parse(&mut self, parse: &Parse<'_>) {
        let text = String::from_utf8_lossy(parse.text).into_owned();
        match console::parse(&text) {
            Ok(_) if self.statements.len() >= limits::CONSOLE_STATEMENTS_MAX => {
                let message = format!("more than {} prepared statements", limits::CONSOLE_STATEMENTS_MAX);
                self.refuse(&Problem::error(
                    SqlState::ConfigurationLimitExceeded,
                    message,
                    "Close statements that are not needed any more.",
                ));
            }
            Ok(command) => {
                self.statements.insert(Bytes::copy_from_slice(parse.name), command);
                self.out.extend_from_slice(backend::PARSE_COMPLETE);
            }
            Err(unknown) => self.refuse(&problem(&unknown)),
        }
    }

    fn bind(&mut self, bind: &Bind<'_>) {
        let Some(command) = self.statements.get(bind.statement) else {
            return self.refuse(&missing(
                "prepared statement",
                bind.statement,
                SqlState::UndefinedPreparedStatement,
            ));
        };
        let portal =
            Portal { command: command.clone(), binary: bind.results().ends_with(&[0, 1]), answer: None };
        if self.portals.len() >= limits::CONSOLE_STATEMENTS_MAX {
            self.portals.clear();
        }
        self.portals.insert(Bytes::copy_from_slice(bind.portal), portal);
        self.out.extend_from_slice(backend::BIND_COMPLETE);
    }

    fn describe(&mut self, named: &ObjectName<'_>) {
        let found = if named.statement {
            self.statements.get(named.name).map(|command| (command, false))
        } else {
            self.portals.get(named.name).map(|portal| (&portal.command, portal.binary))
        };
        let Some((command, binary)) = found else {
            let (kind, code) = if named.statement {
                ("prepared statement", SqlState::UndefinedPreparedStatement)
            } else {
                ("portal", SqlState::UndefinedCursor)
            };
            return self.refuse(&missing(kind, named.name, code));
        };
        if named.statement {
            put_frame(&mut self.out, tag::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&[0, 0]));
        }
        match perform::fields(command) {
            Some(fields) => answer::put_fields(&fields, binary, &mut self.out),
            None => self.out.extend_from_slice(backend::NO_DATA),
        }
    }

    async fn execute(&mut self, body: &[u8]) -> Result<(), ConsoleEnd> {
        let Execute { portal: name, rows_max } = Execute::read(body)?;
        let Some(mut portal) = self.portals.remove(name) else {
            self.refuse(&missing("portal", name, SqlState::UndefinedCursor));
            return Ok(());
        };
        let name = Bytes::copy_from_slice(name);
        let mut answer = match portal.answer.take() {
            Some(answer) => answer,
            None => match self.perform(&portal.command).await? {
                Ok(answer) => answer,
                Err(problem) => {
                    self.refuse(&problem);
                    return Ok(());
                }
            },
        };
        let most = usize::try_from(rows_max).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
        answer.put_rows(most, portal.binary, &mut self.out);
        portal.answer = Some(answer);
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Runs a command. It stops if the client disconnects or cancels.
    async fn perform(&mut self, command: &Command) -> Result<Result<Answer, Problem>, ConsoleEnd> {
        match command {
            Command::Ignored(IgnoredCommand::Begin) => self.in_transaction = true,
            Command::Ignored(IgnoredCommand::Commit | IgnoredCommand::Rollback) => {
                self.in_transaction = false
            }
            _ => {}
        }
        if let Some(problem) = self.operator.refusal_of(command, &self.shared) {
            return Ok(Err(problem));
        }
        self.write.drain(&mut self.out).await?;
        let values = self.operator.values(&self.shared);
        let performed = perform::perform(&self.shared, command, values);
        tokio::pin!(performed);
        loop {
            tokio::select! {
                answer = &mut performed => return Ok(answer),
                () = self.cancel_handle.cancelled.notified() => {
                    return Ok(Err(cancelled()));
                }
                count = self.read.fill(&mut self.input), if self.input.len() < limits::SMALL_MESSAGE_BYTES_MAX => {
                    if count? == 0 {
                        return Err(ConsoleEnd::Left);
                    }
                }
            }
        }
    }

    fn refuse(&mut self, problem: &Problem) {
        problem.put(&mut self.out);
        self.skipping = true;
    }

    fn put_ready(&mut self) {
        let status = if self.in_transaction { Status::Transaction } else { Status::Idle };
        hotrow_core::session::put_ready(status, &mut self.out);
    }
}

fn problem(unknown: &console::UnknownCommand) -> Problem {
    Problem::error(SqlState::SyntaxError, unknown.to_string(), console::hint())
}

fn unsupported() -> Problem {
    Problem::error(
        SqlState::FeatureNotSupported,
        "the gateway's console does not support this message",
        console::hint(),
    )
}

fn missing(kind: &str, name: &[u8], code: SqlState) -> Problem {
    let message = format!("{kind} \"{}\" does not exist", String::from_utf8_lossy(name));
    Problem::error(code, message, "Prepare the statement with Parse and create the portal with Bind first.")
}
