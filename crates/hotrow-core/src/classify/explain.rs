//! Prints the decision about a statement and its reason, as `hotrow explain` shows them; decides nothing.

use std::collections::BTreeSet;
use std::fmt::Write;

use hotrow_lane::lane::LaneKind;

use crate::distribution::Distribution;
use crate::key::{Format, KeyColumn, KeySource, ParamValue};

use crate::classify::judge::decision::{Decision, Packing};
use crate::classify::judge::merging::Returns;
use crate::classify::read::analysis::{Analysis, Pass, Switch, SwitchChange, SwitchValue, Transaction};
use crate::classify::read::query::ROW_LOCK;
use crate::classify::reason::Reason;
use crate::pack_mode::PackMode;
use crate::page;

/// A few lines about a statement. Without a decision they tell what the text alone says. `literals` are the values that the
/// text has in place of its parameters; a key shows them, and `$n` for any other parameter.
pub fn explain(analysis: &Analysis, decision: Option<&Decision>, literals: &[String]) -> String {
    match (analysis, decision) {
        (Analysis::Candidate(candidate), Some(Decision::Packed(packing))) => {
            packed(packing, packing.may_be_held_back(candidate), literals)
        }
        (Analysis::Candidate(_), Some(Decision::Pass { reason, effect, locks })) => {
            let mut row = String::new();
            if let Some(packing) = locks {
                contends_for(&mut row, packing, literals);
                waits_for_row(&mut row, packing);
            }
            passed(reason, &effect.names(), &row)
        }
        (Analysis::Candidate(candidate), None) if candidate.locks_row => {
            passed(&Reason::Unsupported(ROW_LOCK), &candidate.effect().names(), "")
        }
        (Analysis::Candidate(candidate), None) => {
            let mut text = String::from("can be packed if the catalog agrees\n");
            for part in candidate.parts() {
                let table = part.table.as_ref().map_or("no table".to_owned(), ToString::to_string);
                line(&mut text, "table", &table);
            }
            text
        }
        (
            Analysis::Pass(Pass {
                reason, transaction: Some(Transaction::Begin { on_standbys, .. }), ..
            }),
            _,
        ) => begun(reason, *on_standbys),
        (Analysis::Pass(Pass { reason, effect, .. }), _) => passed(reason, &effect.names(), ""),
        (Analysis::Set(change), _) if change.is_local => {
            answered(&format!("until the end of the transaction, {}", effect_of(*change)))
        }
        (Analysis::Set(change), _) => answered(effect_of(*change)),
        (Analysis::SetWrong(_), _) => answered("an error: the setting cannot have this value"),
        (Analysis::Reset(switch), _) => {
            answered(effect_of(SwitchChange { switch: *switch, value: None, is_local: false }))
        }
        (Analysis::Show(Switch::Pack), _) => answered("whether the session's statements are packed"),
        (Analysis::Show(Switch::Reads), _) => answered("where the session's point reads run"),
        (Analysis::Deallocate(name), _) => {
            format!("passed through\n  reason    DEALLOCATE {name} changes the session\n")
        }
    }
}

/// The effect after which the session needs no connection of its own.
const LISTEN: &str = "LISTEN";

/// What a change of a setting of the gateway does.
fn effect_of(change: SwitchChange) -> &'static str {
    match (change.switch, change.value) {
        (_, Some(SwitchValue::Pack(PackMode::On | PackMode::Deferred))) => {
            "switches packing on for the session"
        }
        (_, Some(SwitchValue::Pack(PackMode::Shadow))) => {
            "passes the session's statements through and counts those that would be packed"
        }
        (_, Some(SwitchValue::Pack(PackMode::Off))) => "switches packing off for the session",
        (Switch::Pack, None) => "packing as configured for the session",
        (_, Some(SwitchValue::ReadsFromReplica(true))) => "the session's point reads run on replicas",
        (_, Some(SwitchValue::ReadsFromReplica(false))) => "the session's point reads run on the primary",
        (Switch::Reads, None) => "point reads as at the start of the session",
    }
}

fn answered(what: &str) -> String {
    format!("answered by the gateway: {what}\n")
}

/// A BEGIN that needs no connection.
fn begun(reason: &Reason, on_standbys: bool) -> String {
    let at_primary = if on_standbys { "" } else { " and the server is a primary" };
    let mut text = format!("answered by the gateway, if it is a message of its own{at_primary}\n");
    line(
        &mut text,
        "then",
        "the first statement takes a server connection and keeps it until the transaction ends",
    );
    line(&mut text, "reason", &reason.to_string());
    if let Some(remedy) = reason.remedy() {
        line(&mut text, "instead", remedy);
    }
    text
}

/// `row` are the lines about the row for which it contends, if there are any.
fn passed(reason: &Reason, leaves: &[&str], row: &str) -> String {
    let mut text = format!("passed through\n  reason    {reason}\n{row}");
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

fn packed(packing: &Packing, may_be_held_back: bool, literals: &[String]) -> String {
    let node = packing.distribution.as_ref().map(|distribution| node(packing, distribution, literals));
    if let Some(None) = node {
        return on_several_nodes(packing, literals);
    }
    let mut text = String::from(if packing.merging.is_some() { "merged\n" } else { "packed\n" });
    let lane = match packing.kind {
        LaneKind::Write => "writes",
        LaneKind::Read => "reads",
    };
    line(&mut text, "lane", lane);
    // The statements in WITH come before the last one, as in the text.
    packing.with.iter().chain([packing]).for_each(|part| contends_for(&mut text, part, literals));
    if packing.touches_sequence {
        line(&mut text, "sequence", "moved");
    }
    if packing.kind == LaneKind::Write {
        waits_for_row(&mut text, packing);
    }
    if may_be_held_back {
        line(
            &mut text,
            "deferred",
            concat!("in a transaction, until COMMIT, with pack = \"deferred\" (", page!("deferred.md"), ")"),
        );
    }
    if let Some(Some(node)) = node {
        line(&mut text, "node", &node);
        line(
            &mut text,
            "needs",
            concat!("citus_lanes = true (", page!("citus.md"), "); without it, passed through"),
        );
    }
    if packing.is_plain_read() {
        line(
            &mut text,
            "replica",
            concat!("runs on one in sessions with hotrow.reads = replica (", page!("replicas.md"), ")"),
        );
    }
    line(&mut text, "because", &packing.why);
    text
}

fn on_several_nodes(packing: &Packing, literals: &[String]) -> String {
    let mut text = String::from("passed through\n  reason    its rows are on several nodes\n");
    contends_for(&mut text, packing, literals);
    line(&mut text, "instead", "send a statement for the rows of each node");
    text
}

/// The table that a statement, or one in WITH, uses, and the row for which it contends.
fn contends_for(text: &mut String, packing: &Packing, literals: &[String]) {
    if !packing.table.is_empty() {
        line(text, if packing.in_key_space { "function" } else { "table" }, &packing.table);
    }
    let Some(key) = &packing.key else { return };
    let columns: Vec<String> = key.columns.iter().map(|key| column(key, literals)).collect();
    if packing.takes.is_some() {
        let of = if columns.is_empty() { "of the table" } else { "of this key" };
        line(text, "takes", &format!("the first rows {of} that no other transaction has locked"));
    }
    if !columns.is_empty() {
        line(text, "key", &columns.join(", "));
    }
    if let Some(merging) = &packing.merging {
        line(text, "as", &merging.text);
        line(text, "at most", &format!("{} calls in one", merging.most));
        if merging.returns == Returns::RowsOrWait {
            line(text, "waits", "in the gateway, until there is a result or the call's time is over");
        }
    } else if packing.kind == LaneKind::Write {
        line(
            text,
            "at most",
            &match packing.takes {
                Some(_) => format!("{} rows of one key per commit", packing.rows_per_commit),
                None => format!("{} units of one row per commit", packing.rows_per_commit),
            },
        );
    }
}

/// What happens with a statement that is the first one of an open transaction.
fn waits_for_row(text: &mut String, packing: &Packing) {
    if packing.is_of_one_row() {
        line(
            text,
            "waits",
            "as the first statement of an open transaction: in the gateway, while two other transactions that began with its \
             row are at the server",
        );
    }
}

/// The node that runs a statement of a distributed table, and the shard there. None if its rows are on several nodes.
fn node(packing: &Packing, distribution: &Distribution, literals: &[String]) -> Option<String> {
    let param = |index: u16| {
        let literal = literals.get(usize::from(index))?;
        Some(ParamValue { format: Format::Text, bytes: literal.as_bytes() })
    };
    let shards = packing.key.as_ref().and_then(|key| distribution.shards(key, param)).unwrap_or_default();
    let Some(first) = shards.first() else {
        return Some(format!("the one that has the shard of the value of {}", distribution.column));
    };
    if shards.iter().any(|shard| shard.node != first.node) {
        return None;
    }
    let numbers: BTreeSet<i64> = shards.iter().map(|shard| shard.id).collect();
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let address = distribution.node(first.node).map(|node| format!(" ({}:{})", node.host, node.port));
    Some(format!("{}{}, shard {}", first.node, address.unwrap_or_default(), numbers.join(", ")))
}

fn column(column: &KeyColumn, literals: &[String]) -> String {
    let name = &column.name;
    match &column.source {
        KeySource::OneOf(sources) => {
            let values: Vec<_> = sources.iter().map(|one| value(one, literals)).collect();
            format!("{name} in ({})", values.join(", "))
        }
        KeySource::Each(sources) => {
            let values: Vec<_> = sources.iter().flatten().map(|one| value(one, literals)).collect();
            format!("{name} in ({})", values.join(", "))
        }
        source @ KeySource::Unnested(_) => format!("{name} in unnest({})", value(source, literals)),
        source @ KeySource::Element(_) => format!("{name} = any ({})", value(source, literals)),
        source => format!("{name} = {}", value(source, literals)),
    }
}

fn value(source: &KeySource, literals: &[String]) -> String {
    match source {
        KeySource::Param(index) | KeySource::Element(index) | KeySource::Unnested(index) => {
            let literal = literals.get(usize::from(*index)).cloned();
            literal.unwrap_or_else(|| format!("${}", u32::from(*index) + 1))
        }
        KeySource::Const(value) => value.clone(),
        KeySource::OneOf(_) | KeySource::Each(_) => String::new(), // a list in a list does not occur
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "  {name:<10}{value}").expect("writing to a string does not fail");
}
