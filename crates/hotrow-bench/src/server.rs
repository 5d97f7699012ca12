//! Finds or starts the server of a benchmark.

use crate::error::Error;
use crate::load::joined;
use crate::plan::Plan;
use crate::scenario::Technique;
use hotrow_postgres::{Binaries, PrivateServer};

/// The named server or a private one, the programs in its folder if there are any, and its URL.
pub async fn find_server(plan: &Plan) -> Result<(Option<Binaries>, Option<PrivateServer>, String), Error> {
    const FOR_OTHERS: u32 = 100;
    let connections = (plan.most_clients() + FOR_OTHERS).max(1_000).to_string();
    // Only if it is needed, because a log that can be decoded is longer.
    let wal_level =
        if plan.has_technique(|technique| technique.change_stream) { "logical" } else { "replica" };
    let timing = if plan.has_technique(Technique::is_watched) { "on" } else { "off" };
    let named = plan.upstream.clone();
    let find = move || {
        if let Some(url) = named {
            return Ok((Binaries::installed()?, None, url));
        }
        let binaries = Binaries::find()?;
        let builder = PrivateServer::builder().binaries(binaries.clone()).label("bench");
        let builder = builder.setting("max_connections", connections).setting("wal_level", wal_level);
        let builder = builder.setting("track_wal_io_timing", timing);
        let server = builder.start()?;
        let url = server.url();
        Ok((Some(binaries), Some(server), url))
    };
    // Starting blocks for a second or two, so it runs outside the runtime.
    joined(tokio::task::spawn_blocking(find).await)
}
