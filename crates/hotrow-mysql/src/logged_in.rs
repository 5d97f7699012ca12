//! What a login leads to.

use hotrow_mysql_client::Socket;
use hotrow_mysql_wire::handshake::Response;
use hotrow_mysql_wire::native::Hash;

/// A client and its server connection after the login.
#[derive(Debug)]
pub struct LoggedIn {
    pub client: Socket,
    pub server: Socket,
    /// Whether both sides use DEPRECATE_EOF.
    pub deprecates_eof: bool,
    /// What the client has sent.
    pub response: Response,
    /// The random number and the proof that the server has accepted, if they are of `mysql_native_password`.
    pub proof: Option<(Hash, Vec<u8>)>,
    /// The rights of the user as they were seen before the login, if statements are packed and they can be read.
    pub rights: Option<String>,
    /// The ID of the server connection, which KILL takes.
    pub thread: u32,
    /// The server's status after the login.
    pub status: Option<u16>,
}
