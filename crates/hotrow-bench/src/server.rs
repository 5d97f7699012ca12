//! Finds or starts the server of a benchmark, with the standby and the slow disk that its techniques need.

use crate::error::Error;
use crate::load::{Failure, joined};
use crate::plan::Plan;
use crate::scenario::Technique;
use crate::standby::Standby;
use hotrow_postgres::{Binaries, PrivateServer, SlowFlush};
use std::sync::Arc;

/// The server of a benchmark.
#[derive(Debug)]
pub struct Found {
    /// The programs in the server's folder, if there are any.
    pub binaries: Option<Binaries>,
    /// The private server. `None` if the server was named.
    pub private: Option<Arc<PrivateServer>>,
    /// The URL of the server.
    pub url: String,
    /// The delay of its flushes.
    pub slow_flush: Result<SlowFlush, Failure>,
    /// The standby, if a technique needs it.
    pub standby: Option<Standby>,
}

/// Finds the named server, or starts a private one.
pub async fn find_server(plan: &Plan) -> Result<Found, Error> {
    const FOR_OTHERS: u32 = 100;
    let connections = (plan.most_clients() + FOR_OTHERS).max(1_000).to_string();
    // Only if it is needed, because a WAL that can be decoded is longer.
    let wal_level =
        if plan.has_technique(|technique| technique.change_stream) { "logical" } else { "replica" };
    let timing = if plan.has_technique(Technique::is_watched) { "on" } else { "off" };
    let slow = plan.has_technique(|technique| technique.disk.delay_us > 0);
    let with_standby = plan.has_technique(|technique| technique.disk.standby);
    let named = plan.upstream.clone();
    let find = move || {
        let unneeded = Err(Failure("no chosen technique has a slower disk".into()));
        if let Some(url) = named {
            let binaries = Binaries::installed()?;
            return Ok(Found { binaries, private: None, url, slow_flush: unneeded, standby: None });
        }
        let binaries = Binaries::find()?;
        let builder = PrivateServer::builder().binaries(binaries.clone()).label("bench");
        let builder = builder.setting("max_connections", connections).setting("wal_level", wal_level);
        let mut builder = builder.setting("track_wal_io_timing", timing);
        let slow_flush = if slow { SlowFlush::prepare()?.map_err(Failure) } else { unneeded };
        if let Ok(slow_flush) = &slow_flush {
            builder = builder.slow_flush(slow_flush);
        }
        let server = Arc::new(builder.start()?);
        let standby = with_standby.then(|| Standby::of(&server)).transpose()?;
        let url = server.url();
        Ok(Found { binaries: Some(binaries), private: Some(server), url, slow_flush, standby })
    };
    // Starting blocks for a second or two, so it runs outside the runtime.
    joined(tokio::task::spawn_blocking(find).await)
}
