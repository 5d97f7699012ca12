//! The mark of a lane's connection: found again or opened, taken, and set to a value of this connection.
//! `hotrow_core::witness` says what a mark proves.

use std::time::{Duration, Instant};

use hotrow_connect::pack::{self, CLAIM_MARK};
use hotrow_connect::upstream::{Error, Upstream};
use hotrow_core::limits;
use hotrow_core::witness::Mark;

use super::context::LaneContext;

/// The mark of the lane's earlier connection if possible, else a new one. None if the role cannot use the marks of the
/// hotrow schema, or if it has none of the present form.
pub async fn find(
    upstream: &mut Upstream,
    context: &LaneContext,
    earlier: Option<Mark>,
    in_doubt: bool,
) -> Result<Option<Mark>, Error> {
    if !pack::is_trusted(upstream, &context.config().upstream.user, CLAIM_MARK).await? {
        return Ok(None);
    }
    let mut found = None;
    if let Some(earlier) = &earlier {
        found = claim(upstream, &earlier.name, Some(&earlier.backend), in_doubt).await?;
    }
    if found.is_none()
        && let Some(name) = open(context).await
    {
        found = claim(upstream, &name, None, true).await?;
        if found.is_none() {
            tracing::info!(
                "a lane's new mark was not available: a crash of the server can leave commits in doubt"
            );
        }
    }
    let (Some(Claimed { name, backend, value }), Some(base)) = (found, secret_number()) else {
        return Ok(None);
    };
    let mark = Mark::taken(name, backend, value, base, earlier.as_ref());
    if mark.start == mark.found {
        return Ok(Some(mark));
    }
    let values = [mark.sequence(), &mark.start.to_string()];
    let set = upstream.query_if_allowed(include_str!("../../../sql/set_mark.sql"), &values).await?;
    Ok(set.map(|_| mark))
}

/// The number that makes a connection's values its own. None if the system has no random numbers.
fn secret_number() -> Option<u64> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).ok()?;
    Some(Mark::base(u64::from_ne_bytes(random)))
}

struct Claimed {
    name: String,
    backend: String,
    value: u64,
}

/// Takes a mark as soon as its earlier backend has ended and no other has it. A backend ends a moment after its connection is
/// closed. The wait is longer if a commit is in doubt.
async fn claim(
    upstream: &mut Upstream,
    name: &str,
    earlier: Option<&str>,
    in_doubt: bool,
) -> Result<Option<Claimed>, Error> {
    let patience = if in_doubt { limits::MARK_IN_DOUBT_WAIT_MS } else { limits::MARK_WAIT_MS };
    let deadline = Instant::now() + Duration::from_millis(patience);
    loop {
        if !lives(upstream, earlier).await? {
            let rows =
                upstream.query_if_allowed(include_str!("../../../sql/claim_mark.sql"), &[name]).await?;
            let Some(row) = rows.and_then(|rows| rows.into_iter().next()) else { return Ok(None) };
            if let [Some(value), Some(backend)] = &row[..] {
                let claimed = |value| Claimed { name: name.to_owned(), backend: backend.clone(), value };
                return Ok(value.parse().ok().map(claimed));
            }
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether this backend can still be there.
async fn lives(upstream: &mut Upstream, backend: Option<&str>) -> Result<bool, Error> {
    let Some(backend) = backend else { return Ok(false) };
    let question = include_str!("../../../sql/backend_lives.sql");
    let rows = upstream.query_if_allowed(question, &[backend]).await?;
    Ok(rows.is_none_or(|rows| !rows.is_empty()))
}

/// Opens a mark, on a connection that is closed afterwards: event triggers run there, and their left-over state
/// must not stay on the lane.
async fn open(context: &LaneContext) -> Option<String> {
    let config = context.config().clone();
    let mut parameters = context.parameters.clone();
    parameters.push(("application_name".to_owned(), "hotrow mark".to_owned()));
    let opened = async {
        let mut opener = Upstream::connect(&config.upstream, &parameters, &context.login, true).await?;
        opener.query(include_str!("../../../sql/open_mark.sql"), &[]).await
    };
    match opened.await {
        Ok(rows) => {
            let name = rows.into_iter().flatten().flatten().next().filter(|name| is_mark(name));
            if name.is_none() {
                tracing::info!(
                    "a lane has no mark: its role has as many as it can have, or is not the role that logged in"
                );
            }
            name
        }
        Err(error) => {
            tracing::debug!(%error, "no mark: a crash of the server can leave commits in doubt");
            None
        }
    }
}

/// Whether this is the name of a mark. The gateway must never set another sequence of this role.
fn is_mark(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix("hotrow.mark_").and_then(|numbers| numbers.split_once('/'));
    numbers.is_some_and(|(key, generation)| is_number(key) && is_number(generation))
}
