//! Asks the gateway's classifier about the statements of a recording, with facts from the server's catalogue.

use std::time::{Duration, Instant};

use hotrow_gateway::config::Config;
use hotrow_gateway::explain::{Judge, Ruling};

use crate::recording::{RecordedVerdict, Recording};

/// Statements that are judged: those with the most calls or samples.
const JUDGED_MAX: usize = 200;
/// Time after which no more statements are judged. Facts about tables that are locked are waited for in vain, and the server
/// can take long to describe a statement.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Settings of the session that asks. It keeps its search path, by which it finds the statements' tables.
const SETTINGS: &[(&str, &str)] =
    &[("default_transaction_read_only", "on"), ("lock_timeout", "200"), ("statement_timeout", "2000")];

/// Judges the statements with the most work. Without a connection, the recording says why there are no verdicts.
pub async fn judge(url: &str, recording: &mut Recording) {
    if let Err(error) = try_judge(url, recording).await {
        recording.unpackable = Some(error);
    }
}

async fn try_judge(url: &str, recording: &mut Recording) -> Result<(), String> {
    let upstream = url.parse().map_err(|error| format!("{error}"))?;
    let judge =
        Judge::open(Config::new(upstream, Vec::new()), SETTINGS).await.map_err(|error| error.to_string())?;
    recording.unpackable = judge.unpackable();
    let mut weights = vec![0.0; recording.statements.len()];
    for (weight, statement) in weights.iter_mut().zip(&recording.statements) {
        *weight += statement.counters.as_ref().map_or(0.0, |counters| counters.calls as f64);
    }
    for session in recording.samples.iter().flat_map(|sample| &sample.sessions) {
        if let Some(weight) = session.statement.and_then(|index| weights.get_mut(index)) {
            *weight += 1.0;
        }
    }
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|left, right| weights[*right].total_cmp(&weights[*left]));
    let began = Instant::now();
    for index in order.into_iter().take(JUDGED_MAX) {
        if began.elapsed() > TIME_MAX {
            break;
        }
        let statement = &mut recording.statements[index];
        let ruling = judge.rule(&statement.shape, &statement.types).await;
        statement.verdict = Some(ruling.map_or_else(
            |error| RecordedVerdict {
                name: "unknown".into(),
                reason: error.without_values(),
                ..RecordedVerdict::default()
            },
            verdict,
        ));
    }
    Ok(())
}

fn verdict(ruling: Ruling) -> RecordedVerdict {
    let name = match ruling {
        Ruling { is_merged: true, .. } => "merged",
        Ruling { is_packed: true, .. } => "packed",
        Ruling { is_boundary: true, .. } => "transaction",
        _ => "passed through",
    };
    RecordedVerdict {
        name: name.into(),
        reason: ruling.reason,
        remedy: ruling.remedy.map(str::to_owned),
        key: ruling.key,
        rows_per_commit: ruling.rows_per_commit,
        writes: ruling.writes,
    }
}
