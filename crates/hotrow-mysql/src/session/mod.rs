//! A session after its login. One loop carries the client's commands to the server, the other the replies back. They
//! meet in a queue of the replies that the client expects.

mod commands;
mod replies;

use std::io;
use std::sync::Arc;

use hotrow_core::session::RunOutcome;
use tokio::sync::watch;

use crate::counting::SessionCounts;
use crate::expected::Expected;
use crate::logged_in::LoggedIn;
use crate::packing::{Packer, Pools};
use crate::session::commands::{CommandLoop, Counting};
use crate::session::replies::ReplyLoop;

use crate::server_side::ServerSide;

/// Relays until one of both sides closes its connection, or the gateway stops and no transaction is open.
pub async fn run(
    logged_in: LoggedIn,
    pools: Option<Arc<Pools>>,
    stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let counts = SessionCounts::new(&logged_in.response.user, logged_in.response.database.as_deref());
    let without = if pools.is_some() { RunOutcome::Pinned } else { RunOutcome::SwitchedOff };
    let packer = pools.and_then(|pools| Packer::new(pools, &logged_in));
    let LoggedIn { client, server, deprecates_eof, status, .. } = logged_in;
    let expected = Arc::new(Expected::after_login(status));
    let mut replies = ReplyLoop::new(server.read, client.write, expected.clone(), stopping);
    let mut replies = std::pin::pin!(replies.run(server.arrived));
    let server = ServerSide::new(server.write, expected, deprecates_eof);
    let commands = CommandLoop::new(client.read, server, packer, Counting { counts, without });
    tokio::select! {
        ended = &mut replies => return ended,
        // The server's half is closed by now. The server completes the replies, as without a gateway.
        ended = commands.run(client.arrived) => ended?,
    }
    replies.await
}
