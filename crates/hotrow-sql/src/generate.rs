//! Generates SQL from the manifests: grants, and the merge rules that a migration adds.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::functions::{Function, Grant, functions};
use crate::migrations::{MIGRATIONS, Migration};
use crate::text::Pack;

impl Migration {
    /// The statements of the migration: its file, and the merge rules of the functions that it creates.
    pub fn sql(&self) -> String {
        format!("{}{}", self.text(Pack::One), merge_rules(self))
    }
}

/// The statements that let a role, or `public`, execute its functions. They run each time; granting again changes nothing.
pub(crate) fn grants(grant: Grant, quoted_role: &str) -> String {
    let functions = granted(grant).join(",\n    ");
    format!(
        "grant usage on schema hotrow to {quoted_role};\ngrant execute on function\n    {functions}\nto {quoted_role};\n"
    )
}

/// The signatures of functions and batch functions with this grant.
pub(crate) fn granted(grant: Grant) -> Vec<String> {
    let functions = functions().iter().filter(|function| function.grant == grant);
    functions
        .flat_map(|function| [Some(function.signature()), function.batch_signature()])
        .flatten()
        .collect()
}

/// The merge rules that a migration adds: those of the batch functions that it creates. `0010_merge_rules` adds the rules of all
/// batch functions that were created before it.
pub(crate) fn merge_rules(migration: &Migration) -> String {
    let here = functions().iter().filter(|function| added_by(function) == Some(migration.number));
    here.filter_map(merge_rule).collect()
}

/// The number of the migration that adds a function's merge rule, if it has one.
fn added_by(function: &Function) -> Option<i32> {
    let batch = &function.merge.as_ref()?.batch;
    Some(created_by(batch)?.max(created_by("add_merge_rule")?))
}

/// The number of the last migration that creates a function of this name.
fn created_by(name: &str) -> Option<i32> {
    static CREATED: LazyLock<HashMap<String, i32>> = LazyLock::new(|| {
        let of_file = |migration: &'static Migration| {
            let text = migration.text(Pack::One);
            let creates = text.lines().filter_map(|line| line.strip_prefix("create function hotrow."));
            let names =
                creates.filter_map(|rest| Some((rest.split_once('(')?.0.to_owned(), migration.number)));
            names.collect::<Vec<_>>()
        };
        MIGRATIONS.iter().flat_map(of_file).collect()
    });
    CREATED.get(name).copied()
}

fn merge_rule(function: &Function) -> Option<String> {
    let (merge, batch) = (function.merge.as_ref()?, function.batch_signature()?);
    let most_calls = merge.most_calls.map(|most| format!(", most_calls => {most}")).unwrap_or_default();
    let wait = merge.wait.as_ref().map(|wait| format!(", wait_argument => '{wait}'")).unwrap_or_default();
    Some(format!(
        "\nselect hotrow.add_merge_rule('{}', '{batch}', '{}', '{}'{most_calls}{wait});\n",
        function.signature(),
        merge.key,
        merge.key_space
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_merge_rule_is_added_by_one_migration() {
        let rules: String = MIGRATIONS.iter().map(merge_rules).collect();
        let merged = functions().iter().filter(|function| function.merge.is_some());
        assert_eq!(rules.matches("add_merge_rule(").count(), merged.count());
        let take = "select hotrow.add_merge_rule('hotrow.take(text, int, interval, interval)', \
            'hotrow.take_batch(text[], int[], interval[], interval[])', 'queue', 'hotrow.queue.take', wait_argument => 'wait');";
        assert_eq!(rules.matches(take).count(), 1, "{rules}");
    }

    #[test]
    fn a_function_is_granted_with_its_batch_function() {
        let grants = grants(Grant::Group, "\"a group\"");
        assert!(
            grants.contains("hotrow.drain(text, uuid),\n    hotrow.drain_batch(text[], uuid[]),\n"),
            "{grants}"
        );
        assert!(!grants.contains("merge_rules") && grants.ends_with("to \"a group\";\n"), "{grants}");
    }
}
