//! The gateway's decisions about the statements of a recording.

use std::time::{Duration, Instant};

use hotrow_core::classify::{self, Analysis, Decision, Packing, Reason};
use hotrow_core::key::KeySource;
use hotrow_lane::lane::LaneKind;

use crate::judge::{Error, Judge};
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
    let mut judge = Judge::open(upstream, SETTINGS).await.map_err(|error| error.to_string())?;
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
        let verdict = verdict(&mut judge, &statement.shape, &statement.types).await;
        statement.verdict = Some(verdict.unwrap_or_else(|error| RecordedVerdict {
            name: "unknown".into(),
            reason: error.without_values(),
            ..RecordedVerdict::default()
        }));
    }
    Ok(())
}

/// The verdict about one shape of a statement, whose parameters have these types (0 if a type is not known). No code of the users
/// who sent the statement or own its tables runs on the server.
async fn verdict(judge: &mut Judge, shape: &str, types: &[u32]) -> Result<RecordedVerdict, Error> {
    Ok(match classify::analyse(shape) {
        Analysis::Candidate(candidate) => {
            if candidate.needs_description() && may_contain_constant(shape) {
                return Err(Error::Constant);
            }
            match judge.decide(&candidate, shape, types).await? {
                Decision::Packed(packing) => packed(&packing),
                Decision::Pass { reason, .. } => passed(&reason, false),
            }
        }
        Analysis::Pass(pass) => passed(
            &pass.reason,
            pass.block_command.is_some() || pass.transaction.is_some() || pass.leaves_open == Some(false),
        ),
        _ => passed(&Reason::Session("the statement".to_owned()), false),
    })
}

/// Whether a text may contain a constant in quotes. The server converts it to the type of its place when it parses the text. If the
/// type is a domain, or contains one, the conversion calls the functions in the domain's checks, with the rights of the session.
/// Numbers and parameters are not converted before the statement runs.
fn may_contain_constant(text: &str) -> bool {
    let mut after_dollars = text.split('$').skip(1);
    text.contains('\'') || after_dollars.any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn passed(reason: &Reason, is_boundary: bool) -> RecordedVerdict {
    RecordedVerdict {
        name: if is_boundary { "transaction" } else { "passed through" }.into(),
        reason: reason.to_string(),
        remedy: reason.remedy().map(str::to_owned),
        ..RecordedVerdict::default()
    }
}

fn packed(packing: &Packing) -> RecordedVerdict {
    // Of several statements in WITH, one with a key.
    let part = packing.parts().find(|part| part.key.is_some()).unwrap_or(packing);
    let columns = part.key.iter().flat_map(|key| &key.columns);
    let parameter = |source: &KeySource| match source {
        KeySource::Param(index) => Some(*index),
        _ => None,
    };
    RecordedVerdict {
        name: if packing.merging.is_some() { "merged" } else { "packed" }.into(),
        reason: packing.why.clone(),
        remedy: None,
        key: columns.map(|column| (column.name.clone(), parameter(&column.source))).collect(),
        rows_per_commit: Some(part.rows_per_commit),
        writes: packing.kind == LaneKind::Write,
    }
}
