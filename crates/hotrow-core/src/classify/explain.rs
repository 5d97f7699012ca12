//! Prints the decision about a statement and its reason, as `hotrow explain` shows them; decides nothing.

use std::fmt::Write;

use crate::key::{KeyColumn, KeySource};

use crate::classify::judge::decision::{Decision, Packing};
use crate::classify::judge::merging::Returns;
use crate::classify::read::analysis::{Analysis, Pass};
use crate::classify::read::point::ROW_LOCK;
use crate::classify::reason::Reason;
use crate::lane::LaneKind;

/// A few lines about a statement. Without a decision they tell what the text alone says. `literals` are the values that the
/// text has in place of its parameters; a key shows them, and `$n` for any other parameter.
pub fn explain(analysis: &Analysis, decision: Option<&Decision>, literals: &[String]) -> String {
    match (analysis, decision) {
        (Analysis::Candidate(_), Some(Decision::Packed(packing))) => packed(packing, literals),
        (Analysis::Candidate(_), Some(Decision::Pass { reason, effect, .. })) => {
            passed(reason, &effect.names())
        }
        (Analysis::Candidate(candidate), None) if candidate.locks_row => {
            passed(&Reason::Unsupported(ROW_LOCK), &candidate.effect().names())
        }
        (Analysis::Candidate(candidate), None) => {
            let table = candidate.table.as_ref().map_or("no table".to_owned(), ToString::to_string);
            format!("can be packed if the catalogue agrees\n  table     {table}\n")
        }
        (Analysis::Pass(Pass { reason, effect, .. }), _) => passed(reason, &effect.names()),
        (Analysis::SetPack(true), _) => answered("switches packing on for the session"),
        (Analysis::SetPack(false), _) => answered("switches packing off for the session"),
        (Analysis::ResetPack, _) => answered("packing as configured for the session"),
        (Analysis::ShowPack, _) => answered("whether the session's statements are packed"),
        (Analysis::Deallocate(name), _) => {
            format!("passed through\n  reason    DEALLOCATE {name} changes the session\n")
        }
    }
}

/// The effect after which the session needs no connection of its own.
const LISTEN: &str = "LISTEN";

fn answered(what: &str) -> String {
    format!("answered by the gateway: {what}\n")
}

fn passed(reason: &Reason, leaves: &[&str]) -> String {
    let mut text = format!("passed through\n  reason    {reason}\n");
    if !leaves.is_empty() {
        line(&mut text, "leaves", &leaves.join(", "));
    }
    if leaves.contains(&LISTEN) {
        line(
            &mut text,
            "then",
            "one connection gets the notifications of all sessions of the role that listen",
        );
    }
    if let Some(remedy) = reason.remedy() {
        line(&mut text, "instead", remedy);
    }
    text
}

fn packed(packing: &Packing, literals: &[String]) -> String {
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
        let columns: Vec<String> = key.columns.iter().map(|key| column(key, literals)).collect();
        line(&mut text, "key", &columns.join(", "));
        if let Some(merging) = &packing.merging {
            line(&mut text, "as", &merging.text);
            line(&mut text, "at most", &format!("{} calls in one", merging.most));
            if merging.returns == Returns::RowsOrWait {
                line(
                    &mut text,
                    "waits",
                    "in the gateway, until there is a result or the call's time is over",
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

fn column(column: &KeyColumn, literals: &[String]) -> String {
    let name = &column.name;
    match &column.source {
        KeySource::OneOf(sources) => {
            let values: Vec<_> = sources.iter().map(|one| value(one, literals)).collect();
            format!("{name} in ({})", values.join(", "))
        }
        source @ KeySource::Element(_) => format!("{name} = any ({})", value(source, literals)),
        source => format!("{name} = {}", value(source, literals)),
    }
}

fn value(source: &KeySource, literals: &[String]) -> String {
    match source {
        KeySource::Param(index) | KeySource::Element(index) => {
            let literal = literals.get(usize::from(*index)).cloned();
            literal.unwrap_or_else(|| format!("${}", u32::from(*index) + 1))
        }
        KeySource::Const(value) => value.clone(),
        KeySource::OneOf(_) => String::new(), // a list in a list does not occur
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "  {name:<10}{value}").expect("writing to a string does not fail");
}
