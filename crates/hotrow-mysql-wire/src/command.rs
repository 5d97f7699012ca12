//! The commands of a client: the first byte of a payload that has number 0.

/// The shape of a command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyShape {
    /// None at all.
    Nothing,
    /// One packet.
    Single,
    /// Results: each is an OK packet, an error, or columns and rows.
    Results,
    /// Rows without columns.
    Rows,
    /// The description of a prepared statement.
    Prepared,
    /// A dialogue that ends in OK or an error.
    Authentication,
}

/// A command that can be relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    Quit = 0x01,
    InitDb = 0x02,
    Query = 0x03,
    FieldList = 0x04,
    CreateDb = 0x05,
    DropDb = 0x06,
    Refresh = 0x07,
    Shutdown = 0x08,
    Statistics = 0x09,
    ProcessInfo = 0x0a,
    ProcessKill = 0x0c,
    Debug = 0x0d,
    Ping = 0x0e,
    ChangeUser = 0x11,
    StmtPrepare = 0x16,
    StmtExecute = 0x17,
    StmtSendLongData = 0x18,
    StmtClose = 0x19,
    StmtReset = 0x1a,
    SetOption = 0x1b,
    StmtFetch = 0x1c,
    ResetConnection = 0x1f,
}

impl Command {
    /// The payload of the command with what follows its first byte.
    pub fn payload(self, rest: &[u8]) -> Vec<u8> {
        [&[self as u8][..], rest].concat()
    }

    const ALL: [Command; 22] = [
        Command::Quit,
        Command::InitDb,
        Command::Query,
        Command::FieldList,
        Command::CreateDb,
        Command::DropDb,
        Command::Refresh,
        Command::Shutdown,
        Command::Statistics,
        Command::ProcessInfo,
        Command::ProcessKill,
        Command::Debug,
        Command::Ping,
        Command::ChangeUser,
        Command::StmtPrepare,
        Command::StmtExecute,
        Command::StmtSendLongData,
        Command::StmtClose,
        Command::StmtReset,
        Command::SetOption,
        Command::StmtFetch,
        Command::ResetConnection,
    ];

    /// The command with this first byte. None for those that are not relayed: replication (the stream of a binary log
    /// has no end), MariaDB's bulk execution and several commands in one (which the handshake does not offer), and
    /// those that servers reject.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|command| *command as u8 == byte)
    }

    /// The shape of its reply.
    pub fn reply(self) -> ReplyShape {
        match self {
            Command::Quit | Command::StmtSendLongData | Command::StmtClose => ReplyShape::Nothing,
            Command::Query | Command::StmtExecute | Command::ProcessInfo => ReplyShape::Results,
            Command::StmtFetch | Command::FieldList => ReplyShape::Rows,
            Command::StmtPrepare => ReplyShape::Prepared,
            Command::ChangeUser => ReplyShape::Authentication,
            Command::InitDb
            | Command::CreateDb
            | Command::DropDb
            | Command::Refresh
            | Command::Shutdown
            | Command::Statistics
            | Command::ProcessKill
            | Command::Debug
            | Command::Ping
            | Command::StmtReset
            | Command::SetOption
            | Command::ResetConnection => ReplyShape::Single,
        }
    }
}
