//! Tells a person what was decided about a statement and why, as `hotrow explain` prints it; never decides.

use std::fmt::Write;

use crate::key::{KeyColumn, KeySource};

use crate::classify::judge::decision::{Decision, Packing};
use crate::classify::judge::merging::Returns;
use crate::classify::read::analysis::{Analysis, Pass};
use crate::lane::LaneKind;

/// A few lines about a statement; without a decision, what its text alone says.
pub fn explain(analysis: &Analysis, decision: Option<&Decision>) -> String {
    match (analysis, decision) {
        (Analysis::Candidate(_), Some(Decision::Packed(packing))) => packed(packing),
        (Analysis::Candidate(_), Some(Decision::Pass { reason, effect })) => {
            passed(&reason.to_string(), &effect.names())
        }
        (Analysis::Candidate(candidate), None) => {
            let table = candidate.table.as_ref().map_or("no table".to_owned(), ToString::to_string);
            format!("can be packed if the catalogue agrees\n  table     {table}\n")
        }
        (Analysis::Pass(Pass { reason, boundary: Some(_), .. }), _) => {
            let mut text = passed(&reason.to_string(), &[]);
            line(
                &mut text,
                "unless",
                "BEGIN to COMMIT is sent in one go, and all that stands between is packed",
            );
            text
        }
        (Analysis::Pass(Pass { reason, effect, .. }), _) => passed(&reason.to_string(), &effect.names()),
        (Analysis::SetPack(true), _) => {
            "answered by the gateway: switches packing on for the session\n".to_owned()
        }
        (Analysis::SetPack(false), _) => {
            "answered by the gateway: switches packing off for the session\n".to_owned()
        }
        (Analysis::ResetPack, _) => {
            "answered by the gateway: packing as configured for the session\n".to_owned()
        }
        (Analysis::ShowPack, _) => {
            "answered by the gateway: whether the session's statements are packed\n".to_owned()
        }
        (Analysis::Deallocate(name), _) => passed(&format!("DEALLOCATE {name} changes the session"), &[]),
    }
}

fn passed(reason: &str, leaves: &[&str]) -> String {
    let mut text = format!("passed through\n  reason    {reason}\n");
    if !leaves.is_empty() {
        line(&mut text, "leaves", &leaves.join(", "));
    }
    text
}

fn packed(packing: &Packing) -> String {
    let mut text = String::from(if packing.merging.is_some() { "merged\n" } else { "packed\n" });
    let lane = match packing.kind {
        LaneKind::Write => "writes",
        LaneKind::Read => "reads",
    };
    line(&mut text, "lane", lane);
    if !packing.table.is_empty() {
        line(&mut text, if packing.in_key_space { "function" } else { "table" }, &packing.table);
    }
    if let Some(key) = &packing.key {
        let columns: Vec<String> = key.columns.iter().map(column).collect();
        line(&mut text, "key", &columns.join(", "));
        if let Some(merging) = &packing.merging {
            line(&mut text, "as", &merging.text);
            line(&mut text, "at most", &format!("{} calls in one", merging.most));
            if merging.returns == Returns::RowsOrWait {
                line(
                    &mut text,
                    "waits",
                    "in the gateway, while there is nothing to answer and its time is not over",
                );
            }
        } else if packing.kind == LaneKind::Write {
            line(&mut text, "at most", &format!("{} units of one row per commit", packing.rows_per_commit));
        }
    }
    if packing.touches_sequence {
        line(&mut text, "sequence", "moved");
    }
    line(&mut text, "because", &packing.why);
    text
}

fn column(column: &KeyColumn) -> String {
    match &column.source {
        KeySource::Param(index) => format!("{} = ${}", column.name, u32::from(*index) + 1),
        KeySource::Const(text) => format!("{} = {text}", column.name),
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "  {name:<10}{value}").expect("writing to a string does not fail");
}
