//! The errors that the gateway itself sends to clients, with the numbers that MySQL has for them.

use hotrow_mysql_wire::message::Err as ErrPacket;

/// Why the gateway refuses a client or a command.
#[derive(Debug)]
pub enum Refusal<'a> {
    /// The most clients are connected.
    TooManyClients,
    /// The server cannot be reached.
    NoServer(&'a str),
    /// The client's login cannot be read.
    BadLogIn(&'a str),
    /// A command that is not relayed.
    UnknownCommand(u8),
    /// A packet that is no command, outside of a login.
    OutOfOrder,
    /// A commit's outcome cannot be found out.
    UnknownOutcome,
    /// The statement was killed in a lane. The text is the server's.
    Killed,
    /// The gateway stops.
    Stopping,
}

impl Refusal<'_> {
    /// The payload of the error.
    pub fn payload(&self) -> Vec<u8> {
        let (code, sqlstate, message) = match self {
            Refusal::TooManyClients => {
                (1040, "08004", "hotrow: too many clients are connected; raise clients_max".to_owned())
            }
            // Number 2003 is what clients say themselves. They take an error of a server with such a number for a broken packet.
            Refusal::NoServer(why) => (
                1429,
                "HY000",
                format!(
                    "hotrow: cannot connect to the server: {why}; check that it runs, and the gateway's upstream"
                ),
            ),
            Refusal::BadLogIn(why) => (1043, "08S01", format!("hotrow: the login cannot be used: {why}")),
            Refusal::UnknownCommand(byte) => (
                1047,
                "08S01",
                format!(
                    "hotrow: command 0x{byte:02x} is not relayed; connect to the server itself to use it"
                ),
            ),
            Refusal::OutOfOrder => (1156, "08S01", "hotrow: got packets out of order".to_owned()),
            Refusal::UnknownOutcome => (
                1105,
                "08007",
                "hotrow: the connection to the server was lost during a commit, and it is unknown whether the statement is committed; check its rows before you repeat it".to_owned(),
            ),
            Refusal::Killed => (1317, "70100", "Query execution was interrupted".to_owned()),
            Refusal::Stopping => (1053, "08S01", "hotrow: the gateway stops; connect again".to_owned()),
        };
        ErrPacket { code, sqlstate: sqlstate.to_owned(), message }.payload()
    }
}
